// Indirect<T>: holds a T on the heap, so that its owner is small; copying copies the T.
#pragma once
#include <memory>
#include <utility>

namespace tenfold {

template <class T> class Indirect {
  public:
    Indirect(T made) : inside_(std::make_unique<T>(std::move(made))) {}
    Indirect(const Indirect& other) : Indirect(*other) {}
    Indirect(Indirect&&) noexcept = default;
    Indirect& operator=(Indirect other) noexcept {
        inside_.swap(other.inside_);
        return *this;
    }

    T& operator*() { return *inside_; }
    const T& operator*() const { return *inside_; }

  private:
    std::unique_ptr<T> inside_;
};

} // namespace tenfold
