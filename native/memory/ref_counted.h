// Reference counting, intrusive: Ref<T> owns one count of a T. The T has `std::atomic<uint32_t>
// references` and `static void destroy(T*)`.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace tenfold {

// The number of GIL-free threads that may count references. While it is 0, each counting thread
// holds the GIL and needs no locked instructions. Those are most of the cost of a small graph. Only
// a thread with the GIL may let others begin. It starts at 1: a process without Python has no GIL.
inline std::atomic<uint32_t> gil_free_threads{1};

inline bool no_gil_free_threads() noexcept {
    return gil_free_threads.load(std::memory_order_acquire) == 0;
}

template <class T>
[[gnu::always_inline]] inline void retain(T* object, uint32_t counts = 1) noexcept {
    std::atomic<uint32_t>& references = object->references;
    // Relaxed: a new reference is only ever copied from an existing one.
    if (no_gil_free_threads())
        references.store(references.load(std::memory_order_relaxed) + counts,
                         std::memory_order_relaxed);
    else
        references.fetch_add(counts, std::memory_order_relaxed);
}

// A thread without a reference can revive objects of an Interner through its table.
template <class T>
concept Interned = requires {
    T::INTERNED;
};

// Takes a count off; true when it was the last.
template <class T> [[gnu::always_inline]] inline bool drop(T* object) noexcept {
    std::atomic<uint32_t>& references = object->references;
    if (no_gil_free_threads()) {
        uint32_t remaining = references.load(std::memory_order_relaxed) - 1;
        references.store(remaining, std::memory_order_relaxed);
        return remaining == 0;
    }
    // A thread that sees 1 is the only owner, so no other thread can be counting. It needs no
    // locked instruction. Acquire lets it see the writes of the others. An interned object must
    // reach 0 instead.
    if constexpr (!Interned<T>)
        if (references.load(std::memory_order_acquire) == 1) return true;
    return references.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

template <class T> void release(T* object) noexcept {
    if (drop(object)) T::destroy(object);
}

template <class T> class Ref {
  public:
    Ref() noexcept = default;
    Ref(std::nullptr_t) noexcept {}
    explicit Ref(T* object) noexcept : object_(object) {
        if (object_) retain(object_);
    }
    Ref(const Ref& other) noexcept : Ref(other.object_) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    // Most destroyed Refs have been moved from: they skip the call.
    [[gnu::always_inline]] ~Ref() {
        if (object_) release(object_);
    }

    // Takes over a count that the caller already owns.
    static Ref adopt(T* object) noexcept {
        Ref ref;
        ref.object_ = object;
        return ref;
    }
    // Hands the count to the caller.
    T* detach() noexcept { return std::exchange(object_, nullptr); }

    T* get() const noexcept { return object_; }
    T* operator->() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }

  private:
    T* object_ = nullptr;
};

// Many references to one object, counted at once. Single increments by two threads would move its
// cache line between them each time. The creator holds a reference, too.
template <class T> class BulkRef {
  public:
    BulkRef(const Ref<T>& of, std::size_t count) noexcept
        : object_(of.get()), remaining_(uint32_t(count)) {
        retain(object_, remaining_);
    }
    BulkRef(const BulkRef&) = delete;
    BulkRef& operator=(const BulkRef&) = delete;
    ~BulkRef() { object_->references.fetch_sub(remaining_, std::memory_order_relaxed); }
    Ref<T> take() noexcept {
        --remaining_;
        return Ref<T>::adopt(object_);
    }

  private:
    T* object_;
    uint32_t remaining_;
};

} // namespace tenfold
