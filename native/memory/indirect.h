// Indirect<T>: holds a T on the heap, so that its owner is small; copying copies the T.
#pragma once
#include <memory>
#include <utility>

namespace tenfold {

template <class T> class Indirect {
  public:
    Indirect(T result) : object_(std::make_unique<T>(std::move(result))) {}
    Indirect(const Indirect& other) : Indirect(*other) {}
    Indirect(Indirect&&) noexcept = default;
    Indirect& operator=(Indirect other) noexcept {
        object_.swap(other.object_);
        return *this;
    }

    T& operator*() { return *object_; }
    const T& operator*() const { return *object_; }

  private:
    std::unique_ptr<T> object_;
};

} // namespace tenfold
