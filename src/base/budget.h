// Budget: a limit on bytes in use, shared by threads. A budget may be part of a larger one.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Budget {
    const char    *setting;         // names it in messages: "request_mb"
    struct Budget *whole;           // the budget it is part of; NULL: none
    size_t         most;            // bytes; 0: no limit of its own
    _Atomic size_t used;            // bytes taken and not given back
    _Atomic bool   crowded;         // see budget_crowded
    _Atomic size_t kept;            // bytes that are kept for later, beside those used
    void (*release)(size_t bytes);  // gives up kept bytes
} Budget;

// Takes bytes from it and from all budgets that it is part of. False: one of them is used up, and
// nothing was taken. Accepts NULL: no limit.
bool budget_take(Budget *b, size_t bytes);
// The same for memory that another limit bounds: never refused, it may exceed the budget.
void budget_add(Budget *b, size_t bytes);
void budget_give(Budget *b, size_t bytes);  // accepts NULL
// Counts bytes that are kept for later and released once they are taken: false where there is no
// room for them, or three quarters are kept. Parts and wholes do not know of them.
bool budget_keep(Budget *b, size_t bytes);
void budget_unkeep(Budget *b, size_t bytes);
// Makes it a part of another whole, with all that it has taken. False: that has no room for it,
// nothing changed. No other thread may use b meanwhile.
bool budget_move(Budget *b, Budget *whole);
// The first budget, from b to the largest, that has no room for bytes; NULL: all have.
const Budget *budget_short(const Budget *b, size_t bytes);
// Whether budget_take(b) was last refused because of what others hold in a larger budget, so that
// it may succeed later.
bool   budget_crowded(const Budget *b);
size_t budget_used(const Budget *b);
