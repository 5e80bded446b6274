// polar with a raw query: it is transformed here, once for all keys of a workgroup.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
#define QUERY_TRANSFORM
#include "vulkan_polar.glsl"
