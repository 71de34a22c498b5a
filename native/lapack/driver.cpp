// LAPACK drivers: the one table of all of them.
#include "lapack/driver.h"

#include <algorithm>

namespace tenfold::lapack {

const DriverEntry* find_driver(std::string_view name) {
    static const DriverTable table = [] {
        DriverTable all;
        for (const DriverTable& drivers : {lu_cholesky_drivers(), symmetric_drivers(),
                                           triangular_drivers(), qr_svd_eig_drivers()})
            all.insert(all.end(), drivers.begin(), drivers.end());
        return all;
    }();
    auto found = std::find_if(table.begin(), table.end(),
                              [&](const DriverEntry& entry) { return entry.name == name; });
    return found == table.end() ? nullptr : &*found;
}

} // namespace tenfold::lapack
