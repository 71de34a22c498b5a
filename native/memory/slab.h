// Slab<T>: allocates many objects of one type that one thread makes and another frees. They are cut
// from pages that are never returned. Free objects are tracked by pages, and a wholly free page is
// cut anew from its begin. So objects that are made one after the other are adjacent in memory,
// whatever was made and freed before. Each thread takes all free objects of a page at once, and
// gives them back by pages, so that making or freeing one takes no lock in the common case.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "threads/thread_local.h"

namespace tenfold {

template <class T> class Slab {
  public:
    union Slot;
    // A free slot has 0 in place of the reference count of a T, which is 1 or more while it lives.
    struct Free {
        uint32_t references;
        Slot* next;
    };
    union Slot {
        Free free;
        alignas(T) unsigned char bytes[sizeof(T)];
    };

    static void* take() { return ThreadLocal<Local>::get().take(); }
    static void give(void* memory) { ThreadLocal<Local>::get().give(static_cast<Slot*>(memory)); }

    // Calls with each slot that ever held an object.
    template <class F> static void for_each(F&& look) {
        std::vector<Page*> pages;
        {
            Guard guard(shared_->lock);
            pages = shared_->pages;
        }
        for (Page* page : pages)
            for (std::size_t i = 0; i < COUNT; ++i) look(page->slots() + i);
    }

  private:
    static constexpr std::size_t PAGE = std::size_t(1) << 16, LINE = 64, AT_ONCE = 256;
    static constexpr std::size_t COUNT = (PAGE - LINE) / sizeof(Slot);

    // Free slots of a page, the one freed last first.
    struct Chain {
        Slot *first = nullptr, *last = nullptr;
        uint32_t length = 0;

        void push(Slot* slot) {
            slot->free = {0, first};
            if (!first) last = slot;
            first = slot;
            ++length;
        }
        Slot* pop() {
            Slot* slot = first;
            first = slot->free.next;
            --length;
            return slot;
        }
    };

    // The lock of Shared protects it.
    struct Page {
        Page *before = nullptr, *after = nullptr; // among those with free slots
        Chain free;
        uint32_t cut = 0;  // slots that were handed out since all were free
        uint32_t used = 0; // slots that threads have
        bool listed = false;

        Slot* slots() { return reinterpret_cast<Slot*>(reinterpret_cast<char*>(this) + LINE); }
    };
    static_assert(sizeof(Page) <= LINE && alignof(T) <= LINE);

    static Page* page_of(Slot* slot) {
        return reinterpret_cast<Page*>(reinterpret_cast<std::uintptr_t>(slot) & ~(PAGE - 1));
    }

    struct Shared {
        Lock lock; // protects all below
        Page *first = nullptr, *last = nullptr;
        std::vector<Page*> pages;

        void list(Page* page, bool in_front) {
            page->listed = true;
            page->before = in_front ? nullptr : last;
            page->after = in_front ? first : nullptr;
            (page->before ? page->before->after : first) = page;
            (page->after ? page->after->before : last) = page;
        }

        void unlist(Page* page) {
            page->listed = false;
            (page->before ? page->before->after : first) = page->after;
            (page->after ? page->after->before : last) = page->before;
        }

        Chain take() {
            Guard guard(lock);
            if (!first) list(added(), true);
            Page* page = first;
            Chain taken = std::exchange(page->free, {});
            if (!taken.first) {
                uint32_t end = std::min<uint32_t>(COUNT, page->cut + AT_ONCE);
                for (uint32_t i = end; i-- > page->cut;) taken.push(page->slots() + i);
                page->cut = end;
            }
            page->used += taken.length;
            if (page->cut == COUNT) unlist(page);
            return taken;
        }

        // One that is wholly free goes in front, since what comes of it lies in a row.
        void give(Page* page, const Chain& chain) {
            Guard guard(lock);
            chain.last->free.next = page->free.first;
            if (!page->free.first) page->free.last = chain.last;
            page->free.first = chain.first;
            page->free.length += chain.length;
            page->used -= chain.length;
            if (page->used != 0) {
                if (!page->listed) list(page, false);
                return;
            }
            page->free = {};
            page->cut = 0;
            if (page->listed) unlist(page);
            list(page, true);
        }

        Page* added() {
            auto* memory = static_cast<char*>(::operator new (PAGE, std::align_val_t{PAGE}));
            auto* page = new (memory) Page;
            for (std::size_t i = 0; i < COUNT; ++i) page->slots()[i].free = {0, nullptr};
            pages.push_back(page);
            return page;
        }
    };

    struct Run {
        Page* page = nullptr;
        Chain chain;

        void hand_over() {
            if (chain.first) shared_->give(page, std::exchange(chain, {}));
        }
    };

    // What is freed of the page that the thread takes from is taken next, as caches have it still;
    // what is freed of others is gathered, a few pages at a time.
    struct Local {
        Run now;
        std::array<Run, 8> away;

        Slot* take() {
            if (!now.chain.first) refill();
            return now.chain.pop();
        }

        void refill() {
            for (Run& run : away) run.hand_over();
            now.chain = shared_->take();
            now.page = page_of(now.chain.first);
        }

        void give(Slot* slot) {
            Page* page = page_of(slot);
            if (page == now.page) return now.chain.push(slot);
            Run& run = away[reinterpret_cast<std::uintptr_t>(page) / PAGE % away.size()];
            if (run.page != page) {
                run.hand_over();
                run.page = page;
            }
            run.chain.push(slot);
        }

        ~Local() {
            now.hand_over();
            for (Run& run : away) run.hand_over();
        }
    };

    // Made when the library is loaded; outlives every T.
    static inline Shared* const shared_ = new Shared;
};

} // namespace tenfold
