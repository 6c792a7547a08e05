#include "kernel/ref/ref_train.h"

#include <inttypes.h>
#include <math.h>

#include "base/tensor.h"
#include "base/work_stop.h"

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
    *weight = p->weight != NULL ? tensor_get_f64(p->weight, class) : 1;
    *loss = -*weight * tensor_get_f64(log_prob, (i / rest * classes + class) * rest + i % rest);
    return ERR_OK;
}

Err ref_loss(const RefLoss *p, const Tensor *log_prob, const Tensor *target, Tensor *y) {
    double weights = 0, losses = 0;
    WORK_EACH (i, tensor_count(target)) {
        double weight, loss;
        TRY(loss_of(p, log_prob, target, i, &weight, &loss));
        weights += weight;
        losses += loss;
        if (p->reduction == REF_LOSS_NONE) tensor_set(y, i, loss);
    }
    if (p->reduction == REF_LOSS_SUM) tensor_set(y, 0, losses);
    if (p->reduction == REF_LOSS_MEAN) tensor_set(y, 0, losses / weights);
    return ERR_OK;
}

static double gradient_at(const RefOptimizer *s, const RefParameter *v, int64_t i) {
    return s->decay * tensor_get_f64(v->x, i) + tensor_get_f64(v->gradient, i);
}

void ref_adagrad(const RefOptimizer *s, const RefParameter *v) {
    WORK_EACH (i, tensor_count(v->x)) {
        double g = gradient_at(s, v, i), h = tensor_get_f64(v->history[0], i) + g * g;
        tensor_set(v->history_new[0], i, h);
        tensor_set(v->x_new, i, tensor_get_f64(v->x, i) - s->rate * g / (sqrt(h) + s->epsilon));
    }
}

void ref_adam(const RefOptimizer *s, const RefParameter *v) {
    WORK_EACH (i, tensor_count(v->x)) {
        double g = gradient_at(s, v, i);
        double m = s->alpha * tensor_get_f64(v->history[0], i) + (1 - s->alpha) * g;
        double h = s->beta * tensor_get_f64(v->history[1], i) + (1 - s->beta) * g * g;
        double x = tensor_get_f64(v->x, i) - s->rate * m / (sqrt(h) + s->epsilon);
        tensor_set(v->history_new[0], i, m);
        tensor_set(v->history_new[1], i, h);
        tensor_set(v->x_new, i, (1 - s->after) * x);
    }
}

void ref_momentum(const RefOptimizer *s, const RefParameter *v) {
    WORK_EACH (i, tensor_count(v->x)) {
        double g = gradient_at(s, v, i);
        double m = s->alpha * tensor_get_f64(v->history[0], i) + s->beta * g;
        tensor_set(v->history_new[0], i, m);
        tensor_set(v->x_new, i,
                   tensor_get_f64(v->x, i) - s->rate * (s->nesterov ? g + s->alpha * m : m));
    }
}
