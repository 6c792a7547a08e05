#include "kernel/ref_step.h"

#include <math.h>

#include "base/number.h"

static double gradient_at(const RefStep *s, const RefVariable *v, int64_t i) {
    return s->decay * number_f64(v->x, i) + number_f64(v->gradient, i);
}

void ref_adagrad(const RefStep *s, const RefVariable *v) {
    for (int64_t i = 0; i < tensor_count(v->x); i++) {
        double g = gradient_at(s, v, i), h = number_f64(v->history[0], i) + g * g;
        number_set(v->history_new[0], i, h);
        number_set(v->x_new, i, number_f64(v->x, i) - s->rate * g / (sqrt(h) + s->epsilon));
    }
}

void ref_adam(const RefStep *s, const RefVariable *v) {
    for (int64_t i = 0; i < tensor_count(v->x); i++) {
        double g = gradient_at(s, v, i);
        double m = s->alpha * number_f64(v->history[0], i) + (1 - s->alpha) * g;
        double h = s->beta * number_f64(v->history[1], i) + (1 - s->beta) * g * g;
        double x = number_f64(v->x, i) - s->rate * m / (sqrt(h) + s->epsilon);
        number_set(v->history_new[0], i, m);
        number_set(v->history_new[1], i, h);
        number_set(v->x_new, i, (1 - s->after) * x);
    }
}

void ref_momentum(const RefStep *s, const RefVariable *v) {
    for (int64_t i = 0; i < tensor_count(v->x); i++) {
        double g = gradient_at(s, v, i);
        double m = s->alpha * number_f64(v->history[0], i) + s->beta * g;
        number_set(v->history_new[0], i, m);
        number_set(v->x_new, i,
                   number_f64(v->x, i) - s->rate * (s->nesterov ? g + s->alpha * m : m));
    }
}
