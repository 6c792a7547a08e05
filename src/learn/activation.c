#include "learn/activation.h"

#include <math.h>
#include <stdbool.h>

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

enum { SIDE = 8 };  // rows side by side: each is summed in order, and their sums do not wait

// The columns behind n become 0.
static inline __attribute__((always_inline)) void softmax_rows(size_t rows, size_t n, size_t cols,
                                                               const float *x, float *y) {
    float most[SIDE], sum[SIDE] = {0};
    for (size_t r = 0; r < rows; r++) most[r] = n > 0 ? x[r * cols] : 0;
    for (size_t i = 1; i < n; i++)
        for (size_t r = 0; r < rows; r++) {
            float v = x[r * cols + i];
            most[r] = v > most[r] ? v : most[r];
        }
    for (size_t r = 0; r < rows; r++) {
        float *to = y + r * cols;
        for (size_t i = 0; i < n; i++) to[i] = x[r * cols + i] - most[r];
        for (size_t i = 0; i < n; i++) to[i] = repro_exp(to[i]);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < rows; r++) sum[r] += y[r * cols + i];
    for (size_t r = 0; r < rows; r++) {
        float *to = y + r * cols;
        for (size_t i = 0; i < n; i++) to[i] /= sum[r];
        for (size_t i = n; i < cols; i++) to[i] = 0;
    }
}

MULTIVERSION_BODY softmax_side_body(size_t n, size_t cols, const float *x, float *y) {
    softmax_rows(SIDE, n, cols, x, y);
}
MULTIVERSION_BODY softmax_one_body(size_t n, size_t cols, const float *x, float *y) {
    softmax_rows(1, n, cols, x, y);
}
MULTIVERSION(static, softmax_side, (size_t n, size_t cols, const float *x, float *y),
             (n, cols, x, y))
MULTIVERSION(static, softmax_one, (size_t n, size_t cols, const float *x, float *y),
             (n, cols, x, y))

static bool equal_lengths(const uint32_t *len) {
    for (size_t r = 1; r < SIDE; r++)
        if (len[r] != len[0]) return false;
    return true;
}

void activation_softmax(size_t rows, size_t cols, const uint32_t *len, const float *x, float *y) {
    for (size_t r = 0; r < rows;) {
        bool side = rows - r >= SIDE && (len == NULL || equal_lengths(len + r));
        (side ? softmax_side : softmax_one)(len ? len[r] : cols, cols, x + r * cols, y + r * cols);
        r += side ? SIDE : 1;
    }
}

void activation_softmax_backward(size_t rows, size_t cols, const float *y, const float *dy,
                                 float *dx) {
    for (size_t r = 0; r < rows; r++, y += cols, dy += cols, dx += cols) {
        float dot = 0;
        for (size_t i = 0; i < cols; i++) dot += y[i] * dy[i];
        for (size_t i = 0; i < cols; i++) dx[i] = y[i] * (dy[i] - dot);
    }
}
