// LAPACK drivers: routines on each matrix of a stack, as kernels with the common kernel ABI.
//
// A unit of work is one matrix. The buffers are the operands, the results and the addresses of
// routines. The sizes are those of a struct of each driver: the layouts of operands and results,
// then lengths, then offsets into the scratch memory of the thread. A driver returns 0, or 1 + the
// index of the first matrix for which it failed; it computes the others.
//
//   KernelHandle kernel = find_driver("inverse")->complex;
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "lapack/matrix_copies.h"
#include "threads/cpu_device.h"

namespace tenfold::lapack {

// The matrices of a stack: bytes from one to the next, then the layout of each.
struct StackedMatrix {
    int64_t distance;
    MatrixLayout layout;

    template <class T = char> T* at(void* buffer, int64_t index) const {
        return reinterpret_cast<T*>(static_cast<char*>(buffer) + index * distance);
    }
};

// Memory of the thread at an offset in bytes.
template <class T> T* area(void* scratch, int64_t offset) {
    return reinterpret_cast<T*>(static_cast<char*>(scratch) + offset);
}

// Matrices of the stack.
struct MatrixRange {
    int64_t begin, end;
};

// Runs `body`, which returns whether it succeeded, for each matrix.
template <class Body> int64_t for_each_matrix(MatrixRange range, Body body) {
    int64_t status = 0;
    for (int64_t i = range.begin; i < range.end; ++i)
        if (!body(i) && status == 0) status = i + 1;
    return status;
}

struct DriverEntry {
    std::string_view name;
    HostKernel real, complex; // computed in float64, and in complex128
    std::size_t sizes;        // how many it reads
};

// A driver whose sizes are a struct.
template <class Sizes>
using Driver = int64_t(const Sizes& s, void** buffers, void* scratch, MatrixRange range);

// A driver with the signature of kernels.
template <class Sizes, Driver<Sizes> DRIVER>
int64_t run_driver(void** buffers, const int64_t* sizes, const double*, void* scratch,
                   int64_t begin, int64_t end) {
    static_assert(std::is_trivially_copyable_v<Sizes> && sizeof(Sizes) % sizeof(int64_t) == 0);
    Sizes s;
    std::memcpy(&s, sizes, sizeof s);
    return DRIVER(s, buffers, scratch, {begin, end});
}

template <class Sizes, Driver<Sizes> REAL, Driver<Sizes> COMPLEX>
DriverEntry entry_of(std::string_view name) {
    return {name, run_driver<Sizes, REAL>, run_driver<Sizes, COMPLEX>,
            sizeof(Sizes) / sizeof(int64_t)};
}

// The drivers of each file.
using DriverTable = std::vector<DriverEntry>;
DriverTable lu_cholesky_drivers();
DriverTable symmetric_drivers();
DriverTable triangular_drivers();
DriverTable qr_svd_eig_drivers();

// Null without one of that name.
const DriverEntry* find_driver(std::string_view name);

} // namespace tenfold::lapack
