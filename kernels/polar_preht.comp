// polar with a query that was transformed before.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
#include "vulkan_polar.glsl"
