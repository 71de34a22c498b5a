// Slab<T>: allocates many objects of one type that one thread makes and another frees. They are cut
// from pages whose addresses are never returned. Free objects are tracked by pages, and a wholly
// free page is cut anew from its begin. So objects made in succession are adjacent in memory,
// whatever the history of the slab. Each thread claims all free objects of a page at once, and
// returns them by pages. Making or freeing one therefore takes no lock in the common case.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <utility>
#include <vector>

#include "threads/thread_local.h"

namespace tenfold {

template <class T> class Slab {
  public:
    union Slot;
    // A free slot has 0 in place of the reference count of a live T, which is at least 1.
    struct Free {
        uint32_t references;
        Slot* next;
    };
    union Slot {
        Free free;
        alignas(T) unsigned char bytes[sizeof(T)];
    };

    static void* allocate() { return ThreadLocal<Local>::get().allocate(); }
    static void deallocate(void* memory) {
        ThreadLocal<Local>::get().deallocate(static_cast<Slot*>(memory));
    }

    // Calls with each slot that ever held an object.
    template <class F> static void for_each(F&& visit) {
        std::vector<Page*> pages;
        {
            Guard guard(shared_->lock);
            pages = shared_->pages;
        }
        for (Page* page : pages)
            for (std::size_t i = 0; i < SLOTS_PER_PAGE; ++i) visit(page->slots() + i);
    }

    // Returns the memory of wholly free pages to the system. They keep their addresses, and read as
    // free slots.
    static void trim() {
        ThreadLocal<Local>::get().flush();
        Guard guard(shared_->lock);
        for (Page* page = shared_->first; page; page = page->next)
            if (page->num_carved == 0)
                madvise(reinterpret_cast<char*>(page) + SYSTEM_PAGE_BYTES,
                        PAGE_BYTES - SYSTEM_PAGE_BYTES, MADV_DONTNEED);
    }

  private:
    static constexpr std::size_t PAGE_BYTES = std::size_t(1) << 16, CACHE_LINE_BYTES = 64,
                                 SYSTEM_PAGE_BYTES = 4096, CHUNK_SLOTS = 256;
    static constexpr std::size_t SLOTS_PER_PAGE = (PAGE_BYTES - CACHE_LINE_BYTES) / sizeof(Slot);

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
        Page *prev = nullptr, *next = nullptr; // among those with free slots
        Chain free;
        uint32_t num_carved = 0; // slots that were handed out since all were free
        uint32_t num_used = 0;   // slots that threads have
        bool is_listed = false;

        Slot* slots() {
            return reinterpret_cast<Slot*>(reinterpret_cast<char*>(this) + CACHE_LINE_BYTES);
        }
    };
    static_assert(sizeof(Page) <= CACHE_LINE_BYTES && alignof(T) <= CACHE_LINE_BYTES);

    static Page* page_of(Slot* slot) {
        return reinterpret_cast<Page*>(reinterpret_cast<std::uintptr_t>(slot) & ~(PAGE_BYTES - 1));
    }

    struct Shared {
        Lock lock; // protects all below
        Page *first = nullptr, *last = nullptr;
        std::vector<Page*> pages;

        void list(Page* page, bool in_front) {
            page->is_listed = true;
            page->prev = in_front ? nullptr : last;
            page->next = in_front ? first : nullptr;
            (page->prev ? page->prev->next : first) = page;
            (page->next ? page->next->prev : last) = page;
        }

        void unlist(Page* page) {
            page->is_listed = false;
            (page->prev ? page->prev->next : first) = page->next;
            (page->next ? page->next->prev : last) = page->prev;
        }

        Chain take_chain() {
            Guard guard(lock);
            if (!first) list(add_page(), true);
            Page* page = first;
            Chain chain = std::exchange(page->free, {});
            if (!chain.first) {
                uint32_t end = std::min<uint32_t>(SLOTS_PER_PAGE, page->num_carved + CHUNK_SLOTS);
                for (uint32_t i = end; i-- > page->num_carved;) chain.push(page->slots() + i);
                page->num_carved = end;
            }
            page->num_used += chain.length;
            if (page->num_carved == SLOTS_PER_PAGE) unlist(page);
            return chain;
        }

        // A wholly free page goes to the front, since its objects will be contiguous.
        void return_chain(Page* page, const Chain& chain) {
            Guard guard(lock);
            chain.last->free.next = page->free.first;
            if (!page->free.first) page->free.last = chain.last;
            page->free.first = chain.first;
            page->free.length += chain.length;
            page->num_used -= chain.length;
            if (page->num_used != 0) {
                if (!page->is_listed) list(page, false);
                return;
            }
            page->free = {};
            page->num_carved = 0;
            if (page->is_listed) unlist(page);
            list(page, true);
        }

        Page* add_page() {
            auto* memory =
                static_cast<char*>(::operator new (PAGE_BYTES, std::align_val_t{PAGE_BYTES}));
            auto* page = new (memory) Page;
            for (std::size_t i = 0; i < SLOTS_PER_PAGE; ++i) page->slots()[i].free = {0, nullptr};
            pages.push_back(page);
            return page;
        }
    };

    struct PageRun {
        Page* page = nullptr;
        Chain chain;

        void flush() {
            if (chain.first) shared_->return_chain(page, std::exchange(chain, {}));
        }
    };

    // Objects freed to the thread's current page are reused first, as they are still in the CPU
    // cache. Those freed to other pages are collected, a few pages at a time.
    struct Local {
        PageRun current;
        std::array<PageRun, 8> others;

        Slot* allocate() {
            if (!current.chain.first) refill();
            return current.chain.pop();
        }

        void refill() {
            for (PageRun& run : others) run.flush();
            current.chain = shared_->take_chain();
            current.page = page_of(current.chain.first);
        }

        void deallocate(Slot* slot) {
            Page* page = page_of(slot);
            if (page == current.page) return current.chain.push(slot);
            PageRun& run =
                others[reinterpret_cast<std::uintptr_t>(page) / PAGE_BYTES % others.size()];
            if (run.page != page) {
                run.flush();
                run.page = page;
            }
            run.chain.push(slot);
        }

        void flush() {
            current.flush();
            for (PageRun& run : others) run.flush();
        }

        ~Local() { flush(); }
    };

    // Made when the library is loaded; outlives every T.
    static inline Shared* const shared_ = new Shared;
};

} // namespace tenfold
