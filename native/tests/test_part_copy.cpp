// Part copy test: each element size, layouts, numbers, and ranges of several threads.
#include "sums.h"

#include <cstring>

#include "exec/part_copy.h"
#include "ir/intern.h"
#include "threads/device.h"

using namespace tenfold;
using namespace tenfold::testing;

namespace {

int64_t number_at(const Value& value, int64_t index) {
    int64_t number;
    std::memcpy(&number, static_cast<char*>(value.buffers[0].address()) + 8 * index, 8);
    return number;
}

void launch(Assignment& assignment) {
    CHECK(assignment.fits());
    Work work = assignment.work();
    if (work.units > 0) CHECK(DirectLauncher().launch_and_wait(CPU, work).succeeded());
}

Ref<Value> filled(const Shape& shape, int64_t begin) {
    Ref<Value> result = Value::uninitialized(number_type(shape));
    for (int64_t i = 0; i < result->type->size(); ++i) {
        int64_t number = begin + i;
        std::memcpy(static_cast<char*>(result->buffers[0].address()) + 8 * i, &number, 8);
    }
    return result;
}

// A value with these lengths and strides, in elements, in the memory of another.
Ref<Value> part(const Value& of, const Shape& shape, Shape strides, int64_t offset) {
    for (int64_t& stride : strides) stride *= 8;
    Ref<Value> result =
        Value::in_memory(of.buffers[0].allocation, number_type(shape), std::move(strides));
    result->buffers[0].offset = 8 * offset;
    return result;
}

} // namespace

static void every_element_of_a_part_is_replaced_and_no_other() {
    for (int64_t length : {1, 2, 4'095, 4'096, 4'097, 100'000}) {
        Ref<Value> whole = filled({2 * length + 2}, 0), given = filled({length}, -length);
        Assignment assignment(*part(*whole, {length}, {2}, 1), given.get(), {}, 4);
        launch(assignment);
        for (int64_t i = 0; i < 2 * length + 2; ++i) {
            bool inside = i % 2 == 1 && i / 2 < length;
            CHECK(number_at(*whole, i) == (inside ? -length + i / 2 : i));
        }
    }
}

static void what_is_given_is_spread_and_turned() {
    Ref<Value> whole = filled({6, 5}, 0), row = filled({3}, 100);
    Assignment spread(*part(*whole, {4, 3}, {5, -1}, 8), row.get(), {}, 1);
    launch(spread);
    for (int64_t i = 0; i < 6; ++i)
        for (int64_t j = 0; j < 5; ++j) {
            bool inside = i >= 1 && i < 5 && j >= 1 && j < 4;
            CHECK(number_at(*whole, 5 * i + j) == (inside ? 103 - j : 5 * i + j));
        }
}

static void numbers_are_written_to_all() {
    Ref<Value> whole = filled({300, 70}, 0);
    Assignment assignment(*part(*whole, {300, 35}, {70, 2}, 0), nullptr, {uint64_t(-7), 0}, 4);
    launch(assignment);
    for (int64_t i = 0; i < 300 * 70; ++i) CHECK(number_at(*whole, i) == (i % 2 ? i : -7));
    Assignment none(*part(*whole, {0, 35}, {70, 2}, 0), nullptr, {}, 4);
    CHECK(none.fits() && none.work().units == 0);
    Assignment one(*part(*whole, {}, {}, 3), nullptr, {5, 0}, 4);
    launch(one);
    CHECK(number_at(*whole, 3) == 5 && number_at(*whole, 5) == 5);
}

int main() {
    declare_dtype(1, {'f', 8});
    set_threads(4);
    every_element_of_a_part_is_replaced_and_no_other();
    what_is_given_is_spread_and_turned();
    numbers_are_written_to_all();
}
