// LAPACK test: the work between routines, without LAPACK: copies, permutations, tests of diagonals,
// determinants and block diagonals.
#include <cmath>
#include <set>

#include "check.h"
#include "lapack/block_diagonal.h"
#include "lapack/determinant.h"
#include "lapack/diagonal_tests.h"
#include "lapack/driver.h"

using namespace tenfold;
using namespace tenfold::lapack;

namespace {

constexpr Element ELEMENTS[] = {Element::float32, Element::float64, Element::complex64,
                                Element::complex128};

int64_t bytes_of(Element element) {
    return with_element(element, [](auto number) { return int64_t(sizeof number); });
}

// The numbers of a matrix, one by one.
struct MatrixView {
    char* data;
    MatrixLayout layout;

    char* at(int64_t i, int64_t j) const { return data + i * layout.row + j * layout.column; }
};

Complex number_at(const MatrixView& x, int64_t i, int64_t j) {
    return with_element(x.layout.element, [&](auto zero) {
        const auto number = load<decltype(zero)>(x.at(i, j));
        return Complex(std::real(number), std::imag(number));
    });
}

void set_number(const MatrixView& x, int64_t i, int64_t j, Complex number) {
    with_element(x.layout.element, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::is_floating_point_v<T>) {
            store(x.at(i, j), T(number.real()));
        } else {
            store(x.at(i, j), T(number));
        }
    });
}

enum class Order { rows, columns, reversed };
constexpr Order ORDERS[] = {Order::rows, Order::columns, Order::reversed};

// A matrix in memory of its own, at an odd address.
struct Matrix {
    std::vector<char> memory;
    MatrixView view;

    Matrix(Element element, Order order, int64_t rows, int64_t columns)
        : memory(std::size_t(rows * columns * bytes_of(element) + 1), char(0x55)) {
        const int64_t item = bytes_of(element);
        char* begin = memory.data() + 1;
        if (order == Order::rows) view = {begin, {columns * item, item, element}};
        if (order == Order::columns) view = {begin, {item, rows * item, element}};
        if (order == Order::reversed)
            view = {begin + (rows * columns - 1) * item, {-columns * item, -item, element}};
    }
};

bool is_complex(Element element) { return bytes_of(element) > 8 || element == Element::complex64; }

void check_copy(const Matrix& source, const Matrix& target, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            set_number(source.view, i, j, {double(i * 64 + j), double(i - j)});
    MatrixCopy(source.view.layout, target.view.layout, rows, columns)(source.view.data,
                                                                      target.view.data);
    const bool has_imaginary =
        is_complex(source.view.layout.element) && is_complex(target.view.layout.element);
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            CHECK(number_at(target.view, i, j) ==
                  Complex(double(i * 64 + j), has_imaginary ? double(i - j) : 0));
}

} // namespace

static void copies_convert_any_elements_in_any_order() {
    for (Element from : ELEMENTS)
        for (Element to : ELEMENTS)
            for (Order order : ORDERS)
                for (Order other : ORDERS)
                    for (auto [rows, columns] : {std::pair(1, 1), {4, 4}, {5, 7}, {9, 3}, {6, 1}})
                        check_copy(Matrix(from, order, rows, columns),
                                   Matrix(to, other, rows, columns), rows, columns);
}

static void a_copy_writes_no_byte_beyond_the_matrix() {
    std::vector<double> source(30, 1.0), target(32, 7.0);
    MatrixCopy(by_rows<double>(6), by_columns<double>(5), 5, 6)(source.data(), target.data() + 1);
    CHECK(target.front() == 7 && target.back() == 7 && target[1] == 1 && target[30] == 1);
}

static void a_mirrored_matrix_is_hermitian() {
    std::vector<Complex> x{{1, 0}, {2, 3}, {9, 9}, {4, 0}};
    mirror_lower(x.data(), 2);
    CHECK(x[2] == Complex(2, -3) && x[1] == Complex(2, 3));
    std::vector<double> y{1, 2, 3, 9, 4, 5, 9, 9, 6};
    mirror_lower(y.data(), 3);
    CHECK((y == std::vector<double>{1, 2, 3, 2, 4, 5, 3, 5, 6}));
}

static void conjugation_changes_the_imaginary_parts_only() {
    std::vector<Complex> x{{1, 2}, {3, -0.0}};
    conjugate(x.data(), 2);
    CHECK(x[0] == Complex(1, -2) && x[1].real() == 3 && !std::signbit(x[1].imag()));
}

static void a_permutation_matrix_undoes_the_exchanges() {
    const int pivots[] = {3, 3};
    for (Element element : ELEMENTS) {
        Matrix p(element, Order::rows, 3, 3);
        int row_numbers[3];
        write_permutation(pivots, 2, row_numbers, 3, p.view.data, element);
        // the exchanges (0, 2), (1, 2) bring rows 2, 0, 1 to the top
        const int64_t columns[] = {1, 2, 0};
        for (int64_t i = 0; i < 3; ++i)
            for (int64_t j = 0; j < 3; ++j)
                CHECK(number_at(p.view, i, j) == Complex(j == columns[i] ? 1 : 0));
    }
}

static void pivots_become_numbers_and_back() {
    const int pivots[] = {3, -2, 1 << 30};
    Complex numbers[3];
    store_pivots(pivots, 3, numbers);
    int loaded[3];
    load_pivots(numbers, 3, loaded);
    CHECK(numbers[1] == Complex(-2) && std::equal(loaded, loaded + 3, pivots));
}

static void a_triangle_is_told_by_its_first_element_beside_the_diagonal() {
    for (Element element : ELEMENTS)
        for (Order order : ORDERS)
            for (int64_t n : {2, 5, 40})
                for (bool upper : {false, true}) {
                    Matrix x(element, order, n, n);
                    for (int64_t i = 0; i < n; ++i)
                        for (int64_t j = 0; j < n; ++j) set_number(x.view, i, j, i == j ? 1 : -0.0);
                    upper ? set_number(x.view, 0, n - 1, 1e-30)
                          : set_number(x.view, n - 1, 0, 1e-30);
                    CHECK(is_upper_triangle(x.view.data, x.view.layout, n) == upper);
                }
}

static void diagonals_are_tested_for_zeros_signs_and_infinities() {
    const double infinity = INFINITY, x[] = {1, 9, 9, -2}, y[] = {1, 9, 9, NAN}, z[] = {1, 9, 9, 0};
    const double w[] = {1, 9, 9, infinity};
    CHECK(!has_positive_diagonal(x, 2) && !has_positive_diagonal(y, 2));
    CHECK(has_positive_diagonal(w, 2) && !has_positive_diagonal(z, 2));
    CHECK(has_finite_diagonal(x, 2) && !has_finite_diagonal(y, 2) && !has_finite_diagonal(w, 2));
    CHECK(has_nonzero_diagonal(y, 2, 2) && !has_nonzero_diagonal(z, 2, 2));
    CHECK(is_all_finite(x, 4) && !is_all_finite(y, 4) && !is_all_finite(w, 4));
}

static void determinants_neither_overflow_nor_vanish_on_the_way() {
    std::vector<double> x(16);
    const double diagonal[] = {1e200, 1e300, 1e-300, 1e-200};
    for (int64_t i = 0; i < 4; ++i) x[std::size_t(i * 5)] = diagonal[i];
    const int pivots[] = {2, 2, 3, 4};
    CHECK(std::fabs(value_of(determinant_of(x.data(), pivots, 4)) + 1) < 1e-12);
    x[0] = 1e300, x[15] = 1e300; // 1e600
    const ShiftedNumber<double> large = determinant_of(x.data(), pivots, 4);
    CHECK(value_of(large) == -INFINITY && sign_of(large) == -1);
    CHECK(std::fabs(log_modulus_of(large) - 600 * std::log(10.0)) < 1e-10);
    x[5] = 0;
    const ShiftedNumber<double> zero = determinant_of(x.data(), pivots, 4);
    CHECK(value_of(zero) == 0 && sign_of(zero) == 0 && log_modulus_of(zero) == -INFINITY);
    x[5] = NAN;
    CHECK(std::isnan(log_modulus_of(determinant_of(x.data(), pivots, 4))));
}

static void the_determinant_of_a_cholesky_factor_is_the_square_of_its_diagonal() {
    const Complex x[] = {{2, 0}, {1, 1}, {0, 0}, {3, 0}};
    CHECK(value_of(determinant_of<Complex>(x, nullptr, 2)) == Complex(36));
}

static void the_logarithm_is_that_of_the_library_up_to_two_units() {
    for (double x = 1e-120; x < 1e120; x *= 1.37) {
        const double expected = std::log(x);
        CHECK(std::fabs(natural_logarithm(x) - expected) <= 2.3e-16 * std::fabs(expected) * 2);
    }
    CHECK(natural_logarithm(1) == 0 && natural_logarithm(INFINITY) == INFINITY);
}

// D = [[2, 4, 0], [4, 2, 0], [0, 0, 8]]: a block of two rows, and one of one row.
template <class T> static void solves_with_a_block_diagonal(bool row_major) {
    const T factor[] = {2, 9, 9, 9, 2, 9, 9, 9, 8}, below[] = {4, 0, 5};
    const BlockDiagonal<T> d{factor, below, 3};
    CHECK(is_invertible(d) && d.begins_block(0) && d.ends_block(1) && !d.begins_block(2));
    const T solution[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    T x[6];
    const EquationRows<T> rows{x, row_major ? 2 : 1, row_major ? 1 : 3, 2};
    for (int64_t j = 0; j < 2; ++j) {
        const T a = solution[0][j], b = solution[1][j], c = solution[2][j];
        const T right[] = {T(2) * a + T(4) * b, T(4) * a + T(2) * b, T(8) * c};
        for (int64_t i = 0; i < 3; ++i) x[i * rows.row + j * rows.column] = right[i];
    }
    solve_block_diagonal(d, rows);
    for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 2; ++j)
            CHECK(std::abs(x[i * rows.row + j * rows.column] - solution[i][j]) < 1e-14);
    const int lapack_pivots[] = {-3, -3, 3};
    T stored[3];
    store_interchanges(lapack_pivots, d, stored);
    CHECK(stored[0] == T(-1) && stored[1] == T(-3) && stored[2] == T(-3));
    const int pivots[] = {-1, -3, -3};
    exchange_rows(pivots, 3, rows, false);
    CHECK(std::abs(x[rows.row] - solution[2][0]) < 1e-14);
    exchange_rows(pivots, 3, rows, true);
    CHECK(std::abs(x[rows.row] - solution[1][0]) < 1e-14);
    const T singular[] = {2, 9, 9, 9, 2, 9, 9, 9, 0};
    CHECK(!is_invertible(BlockDiagonal<T>{singular, below, 3}));
}

static void the_status_is_that_of_the_first_failure_and_all_matrices_are_computed() {
    int64_t computed = 0;
    const int64_t status = for_each_matrix({2, 9}, [&](int64_t i) {
        ++computed;
        return i != 4 && i != 7;
    });
    CHECK(status == 5 && computed == 7);
    CHECK(for_each_matrix({0, 3}, [](int64_t) { return true; }) == 0);
}

static void each_driver_is_found_by_its_name() {
    const char* names[] = {"cholesky",
                           "inverse_by_solve",
                           "inverse",
                           "determinant",
                           "solve",
                           "lu_factors",
                           "cholesky_factors",
                           "inverse_factored",
                           "determinant_factored",
                           "solve_factored",
                           "symmetric_factors",
                           "symmetric_solve",
                           "triangular",
                           "diagonal",
                           "qr",
                           "hermitian",
                           "svd",
                           "eigenvalues",
                           "lu"};
    std::set<KernelHandle> kernels;
    for (const char* name : names) {
        const DriverEntry* entry = find_driver(name);
        CHECK(entry && entry->sizes > 8);
        kernels.insert({entry->real, entry->complex});
    }
    CHECK(kernels.size() == 2 * std::size(names) && !find_driver("inverse.float64"));
}

int main() {
    copies_convert_any_elements_in_any_order();
    a_copy_writes_no_byte_beyond_the_matrix();
    a_mirrored_matrix_is_hermitian();
    conjugation_changes_the_imaginary_parts_only();
    a_permutation_matrix_undoes_the_exchanges();
    pivots_become_numbers_and_back();
    a_triangle_is_told_by_its_first_element_beside_the_diagonal();
    diagonals_are_tested_for_zeros_signs_and_infinities();
    determinants_neither_overflow_nor_vanish_on_the_way();
    the_determinant_of_a_cholesky_factor_is_the_square_of_its_diagonal();
    the_logarithm_is_that_of_the_library_up_to_two_units();
    for (bool row_major : {false, true}) {
        solves_with_a_block_diagonal<double>(row_major);
        solves_with_a_block_diagonal<Complex>(row_major);
    }
    the_status_is_that_of_the_first_failure_and_all_matrices_are_computed();
    each_driver_is_found_by_its_name();
}
