// Code bindings: load machine code from bytes or disk, find LAPACK drivers, hash bytes, and
// identify the processor.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <system_error>

#include "jit/cache_entry.h"
#include "jit/code_loader.h"
#include "jit/processor.h"
#include "jit/sha256.h"
#include "lapack/driver.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {

namespace {

Part part(const nb::bytes& bytes) {
    return {static_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

nb::bytes to_python(Part bytes) { return nb::bytes(bytes.data(), bytes.size()); }

nb::tuple to_python(const CacheEntry& entry) {
    nb::list places;
    for (uint64_t place : entry.function_offsets) places.append(place);
    nb::object note =
        nb::steal(PyUnicode_DecodeUTF8(reinterpret_cast<const char*>(entry.note.data()),
                                       Py_ssize_t(entry.note.size()), "replace"));
    if (!note.is_valid()) nb::raise_python_error();
    return nb::make_tuple(to_python(entry.key), to_python(entry.environment), to_python(entry.code),
                          nb::tuple(places), entry.level, double(entry.microseconds) / 1e6, note);
}

std::vector<EntryPoint> functions_at(const Part& bytes, std::span<const uint64_t> places) {
    const Ref<Code> loaded = load_code(bytes.data(), bytes.size());
    std::vector<EntryPoint> functions;
    for (uint64_t place : places)
        if (loaded && place < bytes.size()) functions.push_back({loaded, loaded->kernel_at(place)});
    return functions;
}

// The functions of an entry; none where the system refuses memory for them.
std::vector<EntryPoint> load_entry(int directory, const nb::bytes& key,
                                   const nb::bytes& environment, std::size_t functions,
                                   uid_t user) {
    const std::string name = to_hex(part(key));
    const Part here = part(environment);
    nb::gil_scoped_release others; // a disk may let us wait
    const CacheEntry entry = read_entry(directory, name, user, here);
    if (entry.function_offsets.size() != functions)
        throw InvalidEntry("it has " + std::to_string(entry.function_offsets.size()) +
                           " functions, not " + std::to_string(functions));
    return functions_at(entry.code, entry.function_offsets);
}

void hold_what_the_system_says(const std::exception_ptr& error, void*) {
    try {
        std::rethrow_exception(error);
    } catch (const std::system_error& refused) {
        errno = refused.code().value();
        PyErr_SetFromErrno(PyExc_OSError);
    }
}

void declare_entries(nb::module_& module) {
    using namespace nb::literals;
    nb::exception<InvalidEntry>(module, "InvalidEntry");
    nb::register_exception_translator(hold_what_the_system_says);
    module.attr("MAX_ENTRY_BYTES") = CacheEntry::MAX_BYTES;
    module.attr("MAX_NOTE_BYTES") = CacheEntry::MAX_NOTE_BYTES;
    module.def(
        "open_directory",
        [](const nb::bytes& place, uid_t user) {
            return open_directory(place.c_str(), user).release();
        },
        "place"_a, "user"_a);
    module.def(
        "read_entry",
        [](int directory, const std::string& name, uid_t user) {
            return to_python(read_entry(directory, name, user));
        },
        "directory"_a, "name"_a, "user"_a);
    module.def("load_entry", load_entry, "directory"_a, "key"_a, "environment"_a, "functions"_a,
               "user"_a);
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
    declare_entries(module);
    module.def(
        "load_code",
        [](nb::bytes code, const std::vector<uint64_t>& places) {
            return functions_at(part(code), places);
        },
        "code"_a, "places"_a);
    module.def("lapack_driver", lapack_driver, "name"_a, "complex"_a);
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
