#include "compile/bind.h"
Err bind_chain(Binder *b, const IrLayer *l, Step *s) { return bind_nothing(b, l, s); }
Err bind_conv(Binder *b, const IrLayer *l, Step *s) { return bind_nothing(b, l, s); }
Err bind_gemm(Binder *b, const IrLayer *l, Step *s) { return bind_nothing(b, l, s); }
