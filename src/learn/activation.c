#include "learn/activation.h"

#include <math.h>

#include "learn/multiversion.h"

// Not restrict: callers may work in place.
#define FORWARD(name, expression)                                                                  \
    MULTIVERSION_BODY name##_body(size_t n, const float *x, float *y) {                            \
        for (size_t i = 0; i < n; i++) y[i] = (expression);                                        \
    }                                                                                              \
    MULTIVERSION(static, name, (size_t n, const float *x, float *y), (n, x, y))

#define BACKWARD(name, expression)                                                                 \
    MULTIVERSION_BODY name##_body(size_t n, const float *y, const float *dy, float *dx) {          \
        for (size_t i = 0; i < n; i++) dx[i] = (expression);                                       \
    }                                                                                              \
    MULTIVERSION(static, name, (size_t n, const float *y, const float *dy, float *dx),             \
                 (n, y, dy, dx))

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), and ln(1 + e) = 2 artanh(e / (2 + e)).
static inline float softplus(float x) {
    float e = repro_exp(0.0f - fabsf(x)), s = e / (2.0f + e), u = s * s, p = 1.0f / 15;
    p = p * u + 1.0f / 13;
    p = p * u + 1.0f / 11;
    p = p * u + 1.0f / 9;
    p = p * u + 1.0f / 7;
    p = p * u + 1.0f / 5;
    p = p * u + 1.0f / 3;
    p = p * u + 1.0f;
    return (x > 0 ? x : 0) + 2.0f * s * p;
}

FORWARD(relu, x[i] > 0 ? x[i] : 0)
FORWARD(tanh_all, repro_tanh(x[i]))
FORWARD(sigmoid, repro_sigmoid(x[i]))
FORWARD(softplus_all, softplus(x[i]))
BACKWARD(relu_back, y[i] > 0 ? dy[i] : 0)
BACKWARD(tanh_back, dy[i] * (1.0f - y[i] * y[i]))
BACKWARD(sigmoid_back, dy[i] * y[i] * (1.0f - y[i]))
BACKWARD(softplus_back, dy[i] * (1.0f - repro_exp(0.0f - y[i])))

void activation_forward(Activation act, size_t n, const float *x, float *y) {
    switch (act) {
    case ACTIVATION_NONE:
        if (x != y) memcpy(y, x, n * sizeof *y);
        break;
    case ACTIVATION_RELU: relu(n, x, y); break;
    case ACTIVATION_TANH: tanh_all(n, x, y); break;
    case ACTIVATION_SIGMOID: sigmoid(n, x, y); break;
    case ACTIVATION_SOFTPLUS: softplus_all(n, x, y); break;
    }
}

void activation_backward(Activation act, size_t n, const float *y, const float *dy, float *dx) {
    switch (act) {
    case ACTIVATION_NONE:
        if (dx != dy) memcpy(dx, dy, n * sizeof *dx);
        break;
    case ACTIVATION_RELU: relu_back(n, y, dy, dx); break;
    case ACTIVATION_TANH: tanh_back(n, y, dy, dx); break;
    case ACTIVATION_SIGMOID: sigmoid_back(n, y, dy, dx); break;
    case ACTIVATION_SOFTPLUS: softplus_back(n, y, dy, dx); break;
    }
}

static void softmax_row(size_t n, size_t cols, const float *x, float *y) {
    float most = n > 0 ? x[0] : 0, sum = 0;
    for (size_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n; i++) y[i] = x[i] - most;
    for (size_t i = 0; i < n; i++) y[i] = repro_exp(y[i]);
    for (size_t i = 0; i < n; i++) sum += y[i];
    for (size_t i = 0; i < n; i++) y[i] /= sum;
    for (size_t i = n; i < cols; i++) y[i] = 0;
}

void activation_softmax(size_t rows, size_t cols, const uint32_t *len, const float *x, float *y) {
    for (size_t r = 0; r < rows; r++)
        softmax_row(len ? len[r] : cols, cols, x + r * cols, y + r * cols);
}

void activation_softmax_backward(size_t rows, size_t cols, const float *y, const float *dy,
                                 float *dx) {
    for (size_t r = 0; r < rows; r++, y += cols, dy += cols, dx += cols) {
        float dot = 0;
        for (size_t i = 0; i < cols; i++) dot += y[i] * dy[i];
        for (size_t i = 0; i < cols; i++) dx[i] = y[i] * (dy[i] - dot);
    }
}
