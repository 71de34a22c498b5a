// CHECK(condition): prints the place and ends the program when a condition does not hold.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);     \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (false)
