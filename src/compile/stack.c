#include "compile/stack.h"

#include <stdlib.h>
#include <string.h>

Err stack_push(Stack *s, Slot one) {
    if (s->n == s->cap) {
        uint32_t cap = s->cap == 0 ? 16 : 2 * s->cap;
        Slot    *more = realloc(s->slots, cap * sizeof *more);
        if (more == NULL) return err_set(ERR_LIMIT, "no memory for %u rounds of a loop", cap);
        s->slots = more;
        s->cap = cap;
    }
    s->slots[s->n++] = one;
    return ERR_OK;
}

void stack_finish(Machine *m, Stack *s) {
    for (uint32_t i = 0; i < s->n; i++) slot_drop(m, &s->slots[i]);
    free(s->slots);
    *s = (Stack){0};
}

// Copies slice `at` of a whole with the given axis to or from a packed slice.
static void move_slice(const Tensor *whole, int32_t axis, int64_t at, char *packed, bool in) {
    size_t size = dtype_size(whole->dtype);
    size_t inner = size, outer = 1;
    for (int32_t i = axis + 1; i < whole->rank; i++) inner *= (size_t)whole->dims[i];
    for (int32_t i = 0; i < axis; i++) outer *= (size_t)whole->dims[i];
    size_t step = inner * (size_t)whole->dims[axis];
    char  *base = (char *)whole->data + inner * (size_t)at;
    for (size_t i = 0; i < outer; i++) {
        char *from = in ? packed + i * inner : base + i * step;
        memcpy(in ? base + i * step : packed + i * inner, from, inner);
    }
}

Err stack_join(Machine *m, const Stack *s, int32_t axis, bool reverse, int64_t length,
               const Tensor *like, Slot *out) {
    const Tensor *one = s->n > 0 ? &s->slots[0].t : like;
    if (one->rank < 0 || one->rank >= TENSOR_MAX_RANK)
        return err_set(ERR_UNSUPPORTED, "a stack of values of rank %d", one->rank);
    Tensor whole = {.dtype = one->dtype, .rank = one->rank + 1};
    for (int32_t i = 0; i < whole.rank; i++) {
        int64_t d = i == axis ? length : one->dims[i < axis ? i : i - 1];
        whole.dims[i] = d < 0 ? 0 : d;
    }
    out->t = whole;
    TRY(slot_alloc(m, out));
    for (uint32_t i = 0; i < s->n; i++) {
        const Tensor *t = &s->slots[i].t;
        if (t->dtype != one->dtype || !tensor_same_shape(t, one))
            return err_set(ERR_INVALID, "round %u gives another shape than round 0", i);
        move_slice(&out->t, axis, reverse ? s->n - 1 - i : i, t->data, true);
    }
    return ERR_OK;
}

Err slot_slice(Machine *m, const Tensor *whole, int32_t axis, int64_t at, Slot *out) {
    Tensor one = {.dtype = whole->dtype, .rank = whole->rank - 1};
    for (int32_t i = 0; i < one.rank; i++) one.dims[i] = whole->dims[i < axis ? i : i + 1];
    out->t = one;
    TRY(slot_alloc(m, out));
    move_slice(whole, axis, at, out->t.data, false);
    return ERR_OK;
}
