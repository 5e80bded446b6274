// Values in polar: 128 codes of 4 bits, one norm, one residual bit.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
#define VALUE_BYTES 82u
#define LEVELS 16u
#define level(i) tables.polar_c[i]
#include "vulkan_fused.glsl"

#define STEP 0.04419417382415922 // 0.5 / sqrt(128)

// Element d, not yet transformed back.
float value_at(uint at, uint d)
{
	float y = LEVEL((load16(at + 2u + 2u * (d >> 2)) >> (4u * (d & 3u))) & 15u);

	if (args.use_qjl != 0u)
		y += STEP * sign_of(load16(at + 66u)) *
		     sign_of(tables.residual[d >> 5] >> (d & 31u));
	return y * half_value(load16(at));
}

#ifdef PLAIN
vec4 transformed(uint lane, vec4 y, uint fours);

vec4 value_real(uint lane, uint at)
{
	uint d = 4u * lane;
	vec4 y = vec4(value_at(at, d), value_at(at, d + 1u), value_at(at, d + 2u),
		      value_at(at, d + 3u));

	return transformed(lane, y, 32u) * (1.0 / 128.0);
}
#endif
#include "vulkan_fused_main.glsl"
