// Code bindings: load machine code, find LAPACK drivers, and identify the processor.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "jit/code_loader.h"
#include "jit/processor.h"
#include "lapack/driver.h"
#include "python/value_bindings.h"
#include "threads/thread_blocks.h"

namespace tenfold::bindings {

namespace {

// The functions in machine code; none where the system refuses memory for them.
std::vector<EntryPoint> functions_at(const nb::bytes& code, const std::vector<uint64_t>& places) {
    const Ref<Code> loaded = load_code(code.data(), code.size());
    std::vector<EntryPoint> functions;
    for (uint64_t place : places)
        if (loaded && place < code.size()) functions.push_back({loaded, loaded->kernel_at(place)});
    return functions;
}

// The kernel of a driver, and how many sizes it reads.
std::pair<EntryPoint, std::size_t> lapack_driver(const std::string& name, bool complex) {
    const lapack::DriverEntry* entry = lapack::find_driver(name);
    if (!entry) throw nb::key_error(name.c_str());
    return {EntryPoint{{}, complex ? entry->complex : entry->real}, entry->sizes};
}

} // namespace

void declare_code(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<EntryPoint>(module, "EntryPoint").def_prop_ro("address", [](EntryPoint& self) {
        return reinterpret_cast<std::size_t>(self.kernel.entry());
    });
    module.def("load_code", functions_at, "code"_a, "places"_a);
    module.def("lapack_driver", lapack_driver, "name"_a, "complex"_a);
    module.def("loaded_code_bytes", loaded_code_bytes);
    module.def("block_runner", [] { return reinterpret_cast<std::size_t>(&run_blocks); });
    module.def("processor_level", processor_level);
    module.def("processor_identity", processor_identity);
}

} // namespace tenfold::bindings
