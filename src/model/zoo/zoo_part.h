// Zoo parts: layers that several networks share: image inputs, classifier heads, backbones.
#pragma once

#include "model/net_builder.h"
#include "model/zoo/zoo.h"

uint32_t part_image(NetBuilder *n, const ZooOptions *o, int64_t channels, int64_t size);

// Global pooling and one linear layer to 1000 logits, the network's output.
void part_classifier(NetBuilder *n, uint32_t x, const char *name);

// Squeeze and excitation: a gate per channel from the pooled image.
uint32_t part_squeeze_excite(NetBuilder *n, uint32_t x, int64_t squeezed, NetActivation inner,
                             NetActivation gate);

// Backbones. ResNet-34 is MLPerf's for SSD: three stages, the last with stride 1. *mid of MobileNet
// v1 is block 11, at stride 16. MobileNet v3 ends with the 1x1 convolution to 960 channels; its
// last stage is dilated.
uint32_t part_resnet34_stride8(NetBuilder *n, uint32_t x);
uint32_t part_mobilenet_v1(NetBuilder *n, uint32_t x, uint32_t *mid);
uint32_t part_mobilenet_v3(NetBuilder *n, uint32_t x, int64_t dilation);
