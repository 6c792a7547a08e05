// Operators on signals, on ref_signal.
#include "compile/run.h"
#include "kernel/ref_signal.h"
#include "model/signal.h"

Err run_signal_window(const OpCall *c, Tensor *out) {
    static const double hann[3] = {0.5, 0.5, 0}, hamming[3] = {25.0 / 46, 21.0 / 46, 0},
                        blackman[3] = {0.42, 0.5, 0.08};
    const double *a = c->node->op == OP_HannWindow      ? hann
                      : c->node->op == OP_HammingWindow ? hamming
                                                        : blackman;
    ref_window(a, attr_int(c->node, "periodic", 1) != 0, out);
    return ERR_OK;
}

Err run_dft(const OpCall *c, Tensor *out) {
    SignalDft d;
    Tensor    shape;
    TRY(signal_dft(c, &shape, &d));
    return ref_dft(&(RefDft){d.axis, d.n, d.bins, d.inverse}, c->in[0], c->scratch, out);
}

Err run_stft(const OpCall *c, Tensor *out) {
    SignalStft s;
    Tensor     shape;
    TRY(signal_stft(c, &shape, &s));
    return ref_stft(&(RefStft){s.n, s.step, s.frames, s.bins}, c->in[0], infer_in(c, 2), c->scratch,
                    out);
}

Err run_mel(const OpCall *c, Tensor *out) {
    SignalMel m;
    Tensor    shape;
    TRY(signal_mel(c, &shape, &m));
    ref_mel(&(RefMel){m.points, m.rate, m.low, m.high}, out);
    return ERR_OK;
}
