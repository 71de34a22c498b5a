// Trace log: records the arrays that a traced function reads, makes and changes. Each thread has
// its own. An inner log gets each record first, and passes its records to the outer one when it
// ends.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "python/python_objects.h"

namespace tenfold::bindings {

class TraceLog {
  public:
    TraceLog() = default;
    TraceLog(const TraceLog&) = delete;
    TraceLog& operator=(const TraceLog&) = delete;
    ~TraceLog() { end(); }

    static TraceLog* current();
    void begin();
    // Restores every rebound Array that the trace did not create. A second call does nothing.
    void end();
    nb::list changed() const { return changed_; } // the Arrays whose values differed at the end
    nb::list reads() const { return reads_; }

    void record_created(PyObject* array);
    void record_read(PyObject* array, Node* node);
    void record_rebind(ArrayObject* array);

  private:
    void restore_arrays();
    void forward_to_outer();

    bool is_open_ = false;
    TraceLog* outer_ = nullptr;
    nb::list reads_; // (Array, Node) of each look at one that was not made here
    nb::list changed_;
    std::vector<nb::object> created_;
    std::unordered_set<PyObject*> created_set_; // items of created_, which keeps addresses valid
    std::vector<std::pair<nb::object, Ref<Node>>> rebound_; // with their nodes at first
    std::unordered_set<PyObject*> rebound_set_;
};

} // namespace tenfold::bindings
