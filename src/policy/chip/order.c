#include "policy/chip/order.h"

void order_carve(Order *o, uint32_t n_slots, Carve *from) {
    o->at = carve(from, OrderItem, n_slots);
    order_clear(o);
}

static bool before(const OrderItem *a, const OrderItem *b) {
    return a->key != b->key ? a->key < b->key : a->place < b->place;
}

static void sink(Order *o, uint32_t i) {
    OrderItem moved = o->at[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= o->n) break;
        if (child + 1 < o->n && before(&o->at[child + 1], &o->at[child])) child++;
        if (!before(&o->at[child], &moved)) break;
        o->at[i] = o->at[child];
        i = child;
    }
    o->at[i] = moved;
}

OrderItem order_pop(Order *o) {
    if (!o->sorted)
        for (uint32_t i = o->n / 2; i-- > 0;) sink(o, i);
    o->sorted = true;
    OrderItem first = o->at[0];
    o->at[0] = o->at[--o->n];
    if (o->n > 0) sink(o, 0);
    return first;
}

void order_push(Order *o, OrderItem x) {
    uint32_t i = o->n++;
    for (; i > 0 && before(&x, &o->at[(i - 1) / 2]); i = (i - 1) / 2) o->at[i] = o->at[(i - 1) / 2];
    o->at[i] = x;
}
