// The two single-shot detectors of MLPerf Inference 0.5: on MobileNet v1 at 300x300 and on
// ResNet-34 at 1200x1200, and the second at a size that a CPU answers within 100 ms. They end with
// class scores and box offsets per anchor, before suppression.
#include "model/zoo.h"
#include "model/zoo_part.h"

// anchors x values per place, to batch x all anchors x values
static uint32_t by_anchor(Net *n, uint32_t x, int64_t values) {
    x = net_transpose(n, x, (int64_t[]){0, 2, 3, 1});
    return net_reshape(n, x, 3, (int64_t[]){0, -1, values});
}

static uint32_t extra(Net *n, int at, uint32_t x, NetConv down, NetConv next, NetAct act) {
    net_enter(n, "extras.%d", at);
    down.bias = next.bias = true;
    x = net_act(n, act, net_conv(n, "0", x, down));
    x = net_act(n, act, net_conv(n, "2", x, next));
    net_leave(n);
    return x;
}

void zoo_ssd_mobilenet_v1(Net *n, const ZooOptions *o) {
    static const int64_t mid[4] = {256, 128, 128, 64}, out[4] = {512, 256, 256, 128};
    uint32_t             maps[6], scores[6], boxes[6];
    net_enter(n, "backbone");
    maps[1] = part_mobilenet_v1(n, part_image(n, o, 3, 300), &maps[0]);
    net_leave(n);
    for (int i = 0; i < 4; i++) {
        NetConv down = {.out = mid[i]};
        NetConv next = {.out = out[i], .kernel = 3, .stride = 2, .same = true};
        maps[i + 2] = extra(n, i, maps[i + 1], down, next, NET_RELU6);
    }
    for (int i = 0; i < 6; i++) {
        int64_t anchors = i == 0 ? 3 : 6;
        NetConv scoring = {.out = 91 * anchors, .bias = true};
        NetConv placing = {.out = 4 * anchors, .bias = true};
        net_enter(n, "predictors.%d", i);
        scores[i] = by_anchor(n, net_conv(n, "classification", maps[i], scoring), 91);
        boxes[i] = by_anchor(n, net_conv(n, "regression", maps[i], placing), 4);
        net_leave(n);
    }
    uint32_t all = net_act(n, NET_SIGMOID, net_concat(n, "classes", scores, 6, 1));
    net_output(n, all, "scores");
    net_output(n, net_concat(n, "offsets", boxes, 6, 1), "boxes");
}

// Every head strides by 3: grids of 50, 25, 13, 7, 3 and 3 at 1200x1200.
static void ssd_resnet34(Net *n, const ZooOptions *o, int64_t size) {
    static const int64_t anchors[6] = {4, 6, 6, 6, 4, 4}, mid[5] = {256, 256, 128, 128, 128};
    static const int64_t out[5] = {512, 512, 256, 256, 256}, strides[5] = {2, 2, 2, 2, 1};
    uint32_t             maps[6], scores[6], boxes[6];
    net_enter(n, "model");
    maps[0] = part_resnet34_stride8(n, part_image(n, o, 3, size));
    net_leave(n);
    for (int i = 0; i < 5; i++) {
        NetConv down = {.out = mid[i]};
        NetConv next = {.out = out[i], .kernel = 3, .stride = strides[i], .pad = i < 3};
        maps[i + 1] = extra(n, i, maps[i], down, next, NET_RELU);
    }
    for (int i = 0; i < 6; i++) {
        NetConv scoring = {
            .out = 81 * anchors[i], .kernel = 3, .stride = 3, .pad = 1, .bias = true};
        NetConv placing = {.out = 4 * anchors[i], .kernel = 3, .stride = 3, .pad = 1, .bias = true};
        net_enter(n, "heads.%d", i);
        scores[i] = net_conv(n, "conf", maps[i], scoring);
        scores[i] = net_reshape(n, scores[i], 3, (int64_t[]){0, 81, -1});
        boxes[i] = net_conv(n, "loc", maps[i], placing);
        boxes[i] = net_reshape(n, boxes[i], 3, (int64_t[]){0, 4, -1});
        net_leave(n);
    }
    uint32_t all = net_concat(n, "classes", scores, 6, 2);
    all = net_softmax(n, net_transpose(n, all, (int64_t[]){0, 2, 1}));
    net_output(n, all, "scores");
    all = net_concat(n, "offsets", boxes, 6, 2);
    net_output(n, net_transpose(n, all, (int64_t[]){0, 2, 1}), "boxes");
}

void zoo_ssd_resnet34(Net *n, const ZooOptions *o) { ssd_resnet34(n, o, 1200); }

void zoo_ssd_resnet34_512(Net *n, const ZooOptions *o) { ssd_resnet34(n, o, 512); }
