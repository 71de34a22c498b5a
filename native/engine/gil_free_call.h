// GIL-free call: replays a plan that Python made once, without Python and so without the GIL. The
// plan was made for leaves of some Types; it is replayed for other leaves of these Types.
#pragma once
#include "engine/future.h"
#include "exec/op_interpreter.h"

namespace tenfold {

struct GilFreeCall {
    std::atomic<uint32_t> references{1};
    std::unique_ptr<GraphTemplate> graph_template; // its graph has the structure of the plan's
    std::vector<uint32_t> outputs;                 // where the results stand in it
    Ref<Executable> plan;                          // null: none that needs no Python
    std::vector<int64_t> base_offsets;             // as its key has it
    // Of each leaf of the template; empty: C order. Missing ones are in C order.
    std::vector<std::vector<int64_t>> input_strides;
    bool calls_python = false; // its plan does, so a run needs the GIL
    static void destroy(GilFreeCall* call) { delete call; }
};

// Launches and counts without the GIL.
class GilFreeContext : public ExecutionContext {
  public:
    Result run_on_host(Work& work) override;
    void count(Counter counter) override { count_anywhere(counter); }
};

// Runs one for some leaves after the other.
class GilFreeRunner : GilFreeContext {
  public:
    // `python` runs the calls of Python, under the GIL; null for a plan without them.
    explicit GilFreeRunner(const GilFreeCall& call, ExecutionContext* python = nullptr);

    // Inputs come in the order of the template's leaves. False for a value that the plan cannot
    // read.
    bool bind_input(std::size_t input, const Ref<Value>& value);
    // The results, chained; empty where a part of it failed.
    Ref<Value> run();

  private:
    Result run_on_host(Work& work) override;
    void publish(Node* node, Ref<Value> value) override;
    bool call(const Executable::Call& call, const LinearizedGraph& graph,
              std::vector<Ref<Value>>& slots) override;

    const GilFreeCall& call_;
    ExecutionContext* const python_;
    LinearizedGraph graph_;
    Key key_; // only the base offsets of moved arrays
    std::vector<Ref<Value>> results_;
};

// Computes the results of members without a result, each by itself. A result stays empty where
// another tier must compute it.
void run_gil_free(const GilFreeCall& call, std::span<const Ref<Future>> members,
                  std::span<OperatorResult> answers);

} // namespace tenfold
