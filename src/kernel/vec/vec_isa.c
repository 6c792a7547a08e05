#include "kernel/isa.h"
#include "kernel/vec/vec.h"

#define X(name, ...)  name##_fn VEC_SHARED(name);
#define XB(name, ...) name##_fn VEC(name);
#include "kernel/vec/vec.def"
#undef XB
#undef X

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const Isa VEC(isa) = {
    .name = TEXT(VEC_ISA),
    .lanes = VEC_LANES,
    .registers = VEC_LANES == 16 ? 32 : 16,
#define X(name, ...)  .name = VEC_SHARED(name),
#define XB(name, ...) .name = VEC(name),
#include "kernel/vec/vec.def"
#undef XB
#undef X
};
