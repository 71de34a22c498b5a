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

    static TraceLog* current(); // of this thread
    void begin();
    // Puts back every Array that was changed and not made since it began; those that were another
    // value at the end. A second time it does nothing.
    nb::list end();
    nb::list reads() const { return reads_; }

    void record_created(PyObject* array);
    void record_read(PyObject* array, Node* node);
    void record_rebind(ArrayObject* array);

  private:
    nb::list restore_arrays();
    void forward_to_outer();

    bool is_open_ = false;
    TraceLog* outer_ = nullptr;
    nb::list reads_; // (Array, Node) of each look at one that was not made here
    std::vector<nb::object> created_;
    std::unordered_set<PyObject*> created_set_; // those of made_, which keeps their addresses
    std::vector<std::pair<nb::object, Ref<Node>>> rebound_; // and what they were at first
    std::unordered_set<PyObject*> rebound_set_;             // those of changed_
};

} // namespace tenfold::bindings
