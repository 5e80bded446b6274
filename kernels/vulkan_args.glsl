// What every shader is called with: one layout for all of them (vulkan_plan.h).
//
// Nothing here knows a subgroup: lanes meet in shared memory only, so the numbers are the
// same whatever the width of the hardware is.
#extension GL_EXT_control_flow_attributes : require

layout(constant_id = 0) const uint ROWS = 1;  // runs of keys that a workgroup takes
layout(constant_id = 1) const uint HEADS = 1; // query heads that share its keys, 1 to 8

layout(push_constant) uniform Args {
	uint n_kv;     // keys of a kv head: the stride of keys and of scores
	uint heads;    // query heads of each kv head in this dispatch
	uint groups;   // the same in groups of HEADS
	uint head0;    // the first of them in q
	uint count;    // keys of each kv head in this dispatch
	uint k_at;     // byte of the first key in its binding
	uint v_at;
	uint out_at;   // word of the first output in its binding
	uint use_qjl;
	uint per;      // attention: keys of a split
	uint split0;   // and the first split of this dispatch
	uint splits;   // of all of them
	float sm_scale;
} args;

layout(std430, set = 0, binding = 4) readonly buffer Tables { // struct vulkan_tables
	float turbo3_c[8], turbo4_c[16], tbq3_c[8], polar_c[16], tcq_c[512];
	uint signs32[1], residual[4];
} tables;

// fp16 by integers, since a device may flush subnormal halves to zero.
float half_value(uint h)
{
	uint e = (h >> 10) & 31u, m = h & 1023u;
	uint bits = ((e == 31u ? 255u : e + 112u) << 23) | (m << 13);
	float v = e == 0u ? float(m) * 5.9604644775390625e-8 : uintBitsToFloat(bits);

	return uintBitsToFloat(floatBitsToUint(v) | ((h & 0x8000u) << 16));
}

float brain_value(uint h)
{
	return uintBitsToFloat(h << 16);
}

// The word that begins in the middle of one.
uint word_of(uint lo, uint hi, uint at)
{
	uint shift = (at & 3u) * 8u;

	return (lo >> shift) | ((hi << 1) << (31u - shift));
}

float sign_of(uint bit)
{
	return uintBitsToFloat(0x3f800000u | ((~bit & 1u) << 31));
}

// +1 or -1 for each of the low four bits.
vec4 signs_of(uint bits)
{
	return vec4(sign_of(bits), sign_of(bits >> 1), sign_of(bits >> 2), sign_of(bits >> 3));
}

// Two stages of the butterfly, within four neighbours.
vec4 butterfly4(vec4 x)
{
	x = vec4(x.x + x.y, x.x - x.y, x.z + x.w, x.z - x.w);
	return vec4(x.x + x.z, x.y + x.w, x.x - x.z, x.y - x.w);
}
