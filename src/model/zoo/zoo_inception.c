// GoogLeNet (Szegedy et al. 2014) with batch norm, and Inception v3 (Szegedy et al. 2015), as in
// torchvision, without the auxiliary heads that only training uses. GoogLeNet's 5x5 is a 3x3 there.
#include "model/zoo/zoo.h"
#include "model/zoo/zoo_part.h"

static uint32_t conv_bn_relu(NetBuilder *n, const char *name, uint32_t x, NetConv c) {
    net_push_scope(n, "%s", name);
    x = net_activation(n, NET_RELU, net_batch_norm(n, "bn", net_conv(n, "conv", x, c), 1e-3f));
    net_pop_scope(n);
    return x;
}

static uint32_t joined(NetBuilder *n, const uint32_t *parts, uint32_t count) {
    return net_concat(n, "concat", parts, count, 1);
}

typedef struct GoogleRow {
    const char *name;
    int64_t     one, three_in, three, five_in, five, pool;
} GoogleRow;

static const GoogleRow google_rows[9] = {
    {"inception3a", 64, 96, 128, 16, 32, 32},     {"inception3b", 128, 128, 192, 32, 96, 64},
    {"inception4a", 192, 96, 208, 16, 48, 64},    {"inception4b", 160, 112, 224, 24, 64, 64},
    {"inception4c", 128, 128, 256, 24, 64, 64},   {"inception4d", 112, 144, 288, 32, 64, 64},
    {"inception4e", 256, 160, 320, 32, 128, 128}, {"inception5a", 256, 160, 320, 32, 128, 128},
    {"inception5b", 384, 192, 384, 48, 128, 128}};

static uint32_t google_block(NetBuilder *n, uint32_t x, const GoogleRow *r) {
    uint32_t parts[4];
    net_push_scope(n, "%s", r->name);
    parts[0] = conv_bn_relu(n, "branch1", x, (NetConv){.out = r->one});
    parts[1] = conv_bn_relu(n, "branch2.0", x, (NetConv){.out = r->three_in});
    parts[1] =
        conv_bn_relu(n, "branch2.1", parts[1], (NetConv){.out = r->three, .kernel = 3, .pad = 1});
    parts[2] = conv_bn_relu(n, "branch3.0", x, (NetConv){.out = r->five_in});
    parts[2] =
        conv_bn_relu(n, "branch3.1", parts[2], (NetConv){.out = r->five, .kernel = 3, .pad = 1});
    parts[3] = net_max_pool(n, x, (NetPool){.kernel = 3, .stride = 1, .pad = 1, .ceil = true});
    parts[3] = conv_bn_relu(n, "branch4.1", parts[3], (NetConv){.out = r->pool});
    x = joined(n, parts, 4);
    net_pop_scope(n);
    return x;
}

void zoo_googlenet(NetBuilder *n, const ZooOptions *o) {
    NetPool  pool = {.kernel = 3, .stride = 2, .ceil = true};
    uint32_t x = part_image(n, o, 3, 224);
    x = conv_bn_relu(n, "conv1", x, (NetConv){.out = 64, .kernel = 7, .stride = 2, .pad = 3});
    x = net_max_pool(n, x, pool);
    x = conv_bn_relu(n, "conv2", x, (NetConv){.out = 64});
    x = conv_bn_relu(n, "conv3", x, (NetConv){.out = 192, .kernel = 3, .pad = 1});
    x = net_max_pool(n, x, pool);
    for (int i = 0; i < 9; i++) {
        if (i == 2) x = net_max_pool(n, x, pool);
        if (i == 7) x = net_max_pool(n, x, (NetPool){.kernel = 2, .stride = 2, .ceil = true});
        x = google_block(n, x, &google_rows[i]);
    }
    part_classifier(n, x, "fc");
}

static NetConv square(int64_t out, int64_t kernel) {  // same size
    return (NetConv){.out = out, .kernel = kernel, .pad = kernel / 2};
}

static NetConv halving(int64_t out) { return (NetConv){.out = out, .kernel = 3, .stride = 2}; }

static NetConv row(int64_t out, int64_t length) {  // 1 x length
    return (NetConv){.out = out, .kernel = 1, .kernel_w = length, .pad_w = length / 2};
}

static NetConv column(int64_t out, int64_t length) {  // length x 1
    return (NetConv){.out = out, .kernel = length, .kernel_w = 1, .pad = length / 2};
}

static uint32_t pool_branch(NetBuilder *n, uint32_t x, int64_t out) {
    x = net_avg_pool(n, x, (NetPool){.kernel = 3, .stride = 1, .pad = 1});
    return conv_bn_relu(n, "branch_pool", x, (NetConv){.out = out});
}

static uint32_t block_a(NetBuilder *n, uint32_t x, int64_t pool_out) {
    uint32_t parts[4];
    parts[0] = conv_bn_relu(n, "branch1x1", x, square(64, 1));
    parts[1] = conv_bn_relu(n, "branch5x5_1", x, square(48, 1));
    parts[1] = conv_bn_relu(n, "branch5x5_2", parts[1], square(64, 5));
    parts[2] = conv_bn_relu(n, "branch3x3dbl_1", x, square(64, 1));
    parts[2] = conv_bn_relu(n, "branch3x3dbl_2", parts[2], square(96, 3));
    parts[2] = conv_bn_relu(n, "branch3x3dbl_3", parts[2], square(96, 3));
    parts[3] = pool_branch(n, x, pool_out);
    return joined(n, parts, 4);
}

static uint32_t block_b(NetBuilder *n, uint32_t x, int64_t unused) {
    (void)unused;
    uint32_t parts[3];
    parts[0] = conv_bn_relu(n, "branch3x3", x, halving(384));
    parts[1] = conv_bn_relu(n, "branch3x3dbl_1", x, square(64, 1));
    parts[1] = conv_bn_relu(n, "branch3x3dbl_2", parts[1], square(96, 3));
    parts[1] = conv_bn_relu(n, "branch3x3dbl_3", parts[1], halving(96));
    parts[2] = net_max_pool(n, x, (NetPool){.kernel = 3, .stride = 2});
    return joined(n, parts, 3);
}

static uint32_t block_c(NetBuilder *n, uint32_t x, int64_t mid) {
    uint32_t parts[4];
    parts[0] = conv_bn_relu(n, "branch1x1", x, square(192, 1));
    parts[1] = conv_bn_relu(n, "branch7x7_1", x, square(mid, 1));
    parts[1] = conv_bn_relu(n, "branch7x7_2", parts[1], row(mid, 7));
    parts[1] = conv_bn_relu(n, "branch7x7_3", parts[1], column(192, 7));
    parts[2] = conv_bn_relu(n, "branch7x7dbl_1", x, square(mid, 1));
    parts[2] = conv_bn_relu(n, "branch7x7dbl_2", parts[2], column(mid, 7));
    parts[2] = conv_bn_relu(n, "branch7x7dbl_3", parts[2], row(mid, 7));
    parts[2] = conv_bn_relu(n, "branch7x7dbl_4", parts[2], column(mid, 7));
    parts[2] = conv_bn_relu(n, "branch7x7dbl_5", parts[2], row(192, 7));
    parts[3] = pool_branch(n, x, 192);
    return joined(n, parts, 4);
}

static uint32_t block_d(NetBuilder *n, uint32_t x, int64_t unused) {
    (void)unused;
    uint32_t parts[3];
    parts[0] = conv_bn_relu(n, "branch3x3_1", x, square(192, 1));
    parts[0] = conv_bn_relu(n, "branch3x3_2", parts[0], halving(320));
    parts[1] = conv_bn_relu(n, "branch7x7x3_1", x, square(192, 1));
    parts[1] = conv_bn_relu(n, "branch7x7x3_2", parts[1], row(192, 7));
    parts[1] = conv_bn_relu(n, "branch7x7x3_3", parts[1], column(192, 7));
    parts[1] = conv_bn_relu(n, "branch7x7x3_4", parts[1], halving(192));
    parts[2] = net_max_pool(n, x, (NetPool){.kernel = 3, .stride = 2});
    return joined(n, parts, 3);
}

static uint32_t fork_e(NetBuilder *n, uint32_t x, const char *a, const char *b) {
    uint32_t parts[2];
    parts[0] = conv_bn_relu(n, a, x, row(384, 3));
    parts[1] = conv_bn_relu(n, b, x, column(384, 3));
    return joined(n, parts, 2);
}

static uint32_t block_e(NetBuilder *n, uint32_t x, int64_t unused) {
    (void)unused;
    uint32_t parts[4];
    parts[0] = conv_bn_relu(n, "branch1x1", x, square(320, 1));
    parts[1] = conv_bn_relu(n, "branch3x3_1", x, square(384, 1));
    parts[1] = fork_e(n, parts[1], "branch3x3_2a", "branch3x3_2b");
    parts[2] = conv_bn_relu(n, "branch3x3dbl_1", x, square(448, 1));
    parts[2] = conv_bn_relu(n, "branch3x3dbl_2", parts[2], square(384, 3));
    parts[2] = fork_e(n, parts[2], "branch3x3dbl_3a", "branch3x3dbl_3b");
    parts[3] = pool_branch(n, x, 192);
    return joined(n, parts, 4);
}

typedef struct BlockRow {
    const char *name;
    uint32_t (*block)(NetBuilder *n, uint32_t x, int64_t channels);
    int64_t channels;
} BlockRow;

void zoo_inception_v3(NetBuilder *n, const ZooOptions *o) {
    static const BlockRow rows[11] = {
        {"Mixed_5b", block_a, 32},  {"Mixed_5c", block_a, 64},  {"Mixed_5d", block_a, 64},
        {"Mixed_6a", block_b, 0},   {"Mixed_6b", block_c, 128}, {"Mixed_6c", block_c, 160},
        {"Mixed_6d", block_c, 160}, {"Mixed_6e", block_c, 192}, {"Mixed_7a", block_d, 0},
        {"Mixed_7b", block_e, 0},   {"Mixed_7c", block_e, 0}};
    NetPool  pool = {.kernel = 3, .stride = 2};
    uint32_t x = part_image(n, o, 3, 299);
    x = conv_bn_relu(n, "Conv2d_1a_3x3", x, halving(32));
    x = conv_bn_relu(n, "Conv2d_2a_3x3", x, (NetConv){.out = 32, .kernel = 3});
    x = net_max_pool(n, conv_bn_relu(n, "Conv2d_2b_3x3", x, square(64, 3)), pool);
    x = conv_bn_relu(n, "Conv2d_3b_1x1", x, square(80, 1));
    x = net_max_pool(n, conv_bn_relu(n, "Conv2d_4a_3x3", x, (NetConv){.out = 192, .kernel = 3}),
                     pool);
    for (int i = 0; i < 11; i++) {
        net_push_scope(n, "%s", rows[i].name);
        x = rows[i].block(n, x, rows[i].channels);
        net_pop_scope(n);
    }
    part_classifier(n, x, "fc");
}
