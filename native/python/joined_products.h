// Joined products: computes sparse products of a long graph as one, of the matrix that has theirs
// as its blocks. So matrices of different numbers of elements are one batch.
#pragma once
#include "ir/linearize.h"
#include "python/python_objects.h"

namespace tenfold::bindings {

class JoinedProducts {
  public:
    // Computes products of leaves: such nodes have values in the graph from now on.
    JoinedProducts(LinearizedGraph& graph, std::size_t max_members);
    bool is_empty() const { return computed_.empty(); }
    void publish();   // the values of nodes with outside references
    void take_back(); // the values are not in the graph any more

  private:
    struct Product {
        uint32_t sum, terms, gather, data, indices, offsets, operand;
    };
    void join(std::span<const Product> products);
    bool find(uint32_t sum, Product& product) const;
    Ref<Value> compute(std::span<const Product> products) const;
    const Value* known(uint32_t position) const;
    bool applies(uint32_t position, const Op* op) const;
    const Type& type(uint32_t position) const { return *graph_.nodes[position].node->type; }
    void set_value(uint32_t position, const Ref<Value>& value);

    LinearizedGraph& graph_;
    std::vector<uint32_t> computed_;
};

void declare_joined_products(nb::module_& module);

} // namespace tenfold::bindings
