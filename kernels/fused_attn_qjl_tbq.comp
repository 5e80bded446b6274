// Values in tbq3_0: four blocks of 32 elements, codes of 3 bits, a norm each.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
#define VALUE_BYTES 56u
#define LEVELS 8u
#define level(i) tables.tbq3_c[i]
#include "vulkan_fused.glsl"

// Element d, not yet transformed back.
float value_at(uint at, uint d)
{
	uint bit = 3u * (d & 31u);

	at += 14u * (d >> 5);
	// A code may begin in one half and end in the next.
	return half_value(load16(at)) *
	       LEVEL((load32(at + 2u + 2u * (bit >> 4)) >> (bit & 15u)) & 7u);
}

#ifdef PLAIN
vec4 transformed(uint lane, vec4 y, uint fours);

vec4 value_real(uint lane, uint at)
{
	uint d = 4u * lane;
	vec4 y = vec4(value_at(at, d), value_at(at, d + 1u), value_at(at, d + 2u),
		      value_at(at, d + 3u));

	return transformed(lane, y, 8u) * 0.1767766952966369 *
	       signs_of(tables.signs32[0] >> (d & 31u));
}
#endif
#include "vulkan_fused_main.glsl"
