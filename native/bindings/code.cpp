// Code from Python: bytes of it loaded, bytes hashed, and the processor that it must be for.
#include <nanobind/stl/vector.h>

#include "../loader.h"
#include "../processor.h"
#include "../sha256.h"
#include "python.h"

namespace tenfold::bindings {

void declare_code(nb::module_& module) {
    using namespace nb::literals;
    module.def(
        "load_code",
        [](nb::bytes code) {
            return reinterpret_cast<std::size_t>(load_code(code.data(), code.size()));
        },
        "code"_a);
    module.def("loaded_code_bytes", loaded_code_bytes);
    module.def(
        "sha256",
        [](nb::bytes data) {
            Digest digest = sha256(data.data(), data.size());
            return nb::bytes(digest.data(), digest.size());
        },
        "data"_a);
    module.def("processor_level", processor_level);
    module.def("processor_identity", processor_identity);
}

} // namespace tenfold::bindings
