// Planned graph: a graph on placeholders, and its plan, which Python made once. The plan is
// replayed for leaves of the placeholders' Types, without Python, and so without the GIL. That of a
// batch serves any number of rows, where its lengths are symbolic.
#pragma once
#include "exec/op_interpreter.h"
#include "exec/symbolic_executable.h"

namespace tenfold {

struct PlannedGraph {
    std::atomic<uint32_t> references{1};
    std::unique_ptr<GraphTemplate> graph_template; // its graph has the structure of the plan's
    std::vector<uint32_t> outputs;                 // where the results stand in it
    Ref<Executable> plan;                          // null: none that needs no Python
    bool interprets = false;                       // native loops compute its nodes, not a plan
    bool is_native() const { return plan || interprets; }
    std::vector<int64_t> base_offsets; // as its key has it
    // Strides of each leaf of the template; empty or missing: C order.
    std::vector<std::vector<int64_t>> input_strides;
    bool calls_python = false; // its plan does, so a run needs the GIL

    // Rows of a batch's placeholders, and which outputs have a row for each member; empty: all
    // outputs.
    std::size_t rows = 0;
    std::vector<char> stacked_outputs;
    // For any number of rows; null where there is none. Its lengths, and where the rows stand in
    // them.
    Ref<SymbolicExecutable> symbolic;
    std::vector<int64_t> lengths;
    std::vector<uint32_t> row_lengths;
    // The addresses in the signature of the batch belong to these.
    Ref<Params> params;
    std::vector<Ref<Type>> types;

    // Finds the symbolic executable of its plan. The graph's leaves have values of `rows` rows, and
    // those of `stacked` leaves are stacked.
    void open_rows(const LinearizedGraph& graph, const std::vector<char>& stacked,
                   const OptionKey& options, bool rules);
    // The plan for so many rows; null: none.
    Ref<Executable> plan_for(std::size_t num_rows) const;
    static void destroy(PlannedGraph* planned) { delete planned; }
};

// Launches and counts without the GIL.
class GilFreeContext : public ExecutionContext {
  public:
    Result run_on_host(Work& work) override;
    void count(Counter counter) override { count_anywhere(counter); }
};

// Runs one for some leaves after the other.
class PlannedGraphRunner : GilFreeContext {
  public:
    // `python` runs the calls of Python, under the GIL; null for a plan without them.
    explicit PlannedGraphRunner(const PlannedGraph& planned, ExecutionContext* python = nullptr);

    // Inputs come in the order of the template's leaves. False for a value that the plan cannot
    // read.
    bool bind_input(std::size_t input, const Ref<Value>& value);
    // The results, one for each output; none where a part of it failed. By its own plan, or by one
    // for other lengths.
    std::vector<Ref<Value>> run(const Executable& plan);
    // The results of its own plan, chained.
    Ref<Value> run_chained();

  private:
    Result run_on_host(Work& work) override;
    void count(Counter counter) override;
    bool request_optimised(UseCounter& counter) override;
    void publish(Node* node, Ref<Value> value) override;
    bool call(const Executable::Call& call, const LinearizedGraph& graph,
              std::vector<Ref<Value>>& slots) override;

    const PlannedGraph& planned_;
    ExecutionContext* const python_;
    LinearizedGraph graph_;
    Key key_; // only the base offsets of moved arrays
    std::vector<Ref<Value>> results_;
};

} // namespace tenfold
