// Code from Python: bytes of it loaded, bytes hashed, and the processor that it must be for.
#include <nanobind/stl/vector.h>

#include "../loader.h"
#include "../processor.h"
#include "../sha256.h"
#include "values.h"

namespace tenfold::bindings {

void declare_code(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<EntryPoint>(module, "EntryPoint").def_prop_ro("address", [](EntryPoint& self) {
        return reinterpret_cast<std::size_t>(self.kernel());
    });
    module.def(
        "load_code",
        [](nb::bytes code, const std::vector<std::size_t>& places) {
            Ref<Code> loaded = load_code(code.data(), code.size());
            nb::list entries;
            for (std::size_t place : places)
                if (loaded && place < code.size()) entries.append(EntryPoint{loaded, place});
            return entries;
        },
        "code"_a, "places"_a);
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
