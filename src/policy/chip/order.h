// Order: tasks that wait, the least key first; equal ones in the order in which they were added.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/carve.h"

typedef struct OrderItem {
    double   key;
    uint32_t task;   // index into the view's tasks
    uint32_t place;  // among those added
} OrderItem;

typedef struct Order {
    OrderItem *at;
    uint32_t   n;
    bool       sorted;  // as a heap
} Order;

void order_carve(Order *o, uint32_t n_slots, Carve *from);

static inline void order_clear(Order *o) {
    o->n = 0;
    o->sorted = false;
}

// All are added before the first is popped; later ones are pushed.
static inline void order_add(Order *o, double key, uint32_t task) {
    o->at[o->n] = (OrderItem){key, task, o->n};
    o->n++;
}

OrderItem order_pop(Order *o);                // n > 0
void      order_push(Order *o, OrderItem x);  // one that was popped, with another key
