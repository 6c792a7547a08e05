#include "kernel/ref_loss.h"

#include <inttypes.h>

#include "base/number.h"

static int64_t class_of(const Tensor *target, int64_t i) {
    return target->dtype == DT_I64 ? ((const int64_t *)target->data)[i]
                                   : ((const int32_t *)target->data)[i];
}

// Weight and weighted loss of element i.
static Err loss_of(const RefLoss *p, const Tensor *log_prob, const Tensor *target, int64_t i,
                   double *weight, double *loss) {
    const int64_t classes = log_prob->dims[1], rest = log_prob->dims[2];
    const int64_t class = class_of(target, i);
    *weight = *loss = 0;
    if (p->ignores && class == p->ignored) return ERR_OK;
    if (class < 0 || class >= classes)
        return err_set(ERR_INVALID, "target %" PRId64 " is none of the %" PRId64 " classes", class,
                       classes);
    *weight = p->weight != NULL ? number_f64(p->weight, class) : 1;
    *loss = -*weight * number_f64(log_prob, (i / rest * classes + class) * rest + i % rest);
    return ERR_OK;
}

Err ref_loss(const RefLoss *p, const Tensor *log_prob, const Tensor *target, Tensor *y) {
    double weights = 0, losses = 0;
    for (int64_t i = 0; i < tensor_count(target); i++) {
        double weight, loss;
        TRY(loss_of(p, log_prob, target, i, &weight, &loss));
        weights += weight;
        losses += loss;
        if (p->reduction == REF_LOSS_NONE) number_set(y, i, loss);
    }
    if (p->reduction == REF_LOSS_SUM) number_set(y, 0, losses);
    if (p->reduction == REF_LOSS_MEAN) number_set(y, 0, losses / weights);
    return ERR_OK;
}
