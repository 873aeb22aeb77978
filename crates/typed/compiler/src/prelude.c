/* What a translated module is made of. Operators of WebAssembly have their names, with _ for the dot. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long s64;
typedef float f32;
typedef double f64;
typedef u64 v128 __attribute__((vector_size(16)));

/* As they lie in memory: at any address, and any of them where another was. */
#define ANYWHERE __attribute__((aligned(1), may_alias))
typedef u16 u16m ANYWHERE;
typedef u32 u32m ANYWHERE;
typedef u64 u64m ANYWHERE;
typedef s16 s16m ANYWHERE;
typedef s32 s32m ANYWHERE;
typedef f32 f32m ANYWHERE;
typedef f64 f64m ANYWHERE;
typedef v128 v128m ANYWHERE;

#define INLINE static inline __attribute__((always_inline))
#define HIDDEN __attribute__((visibility("hidden")))
#define AT(type, base, index) (*(type *)((u64)(base) + (u64)(index)))

INLINE __attribute__((noreturn)) void trap(void)
{
	__asm__ volatile("ud2" : : : "memory");
	__builtin_unreachable();
}

INLINE void trap_if(int condition)
{
	if (__builtin_expect(condition, 0))
		trap();
}

INLINE u32 load32(u64 at) { return AT(u32m, at, 0); }
INLINE void store32(u64 at, u32 value) { AT(u32m, at, 0) = value; }

/*
 * An index of which the C compiler knows nothing. Otherwise it can address by 32-bit registers, or by counters that
 * move together, which the checker refuses. The instruction clears the upper half, so that no other one must.
 */
INLINE u64 opaque(u32 index)
{
	u64 wide;

	__asm__("movl %1, %k0" : "=r"(wide) : "rm"(index));
	return wide;
}

/* Loads and stores: the memory's base plus the operator's offset, and the 32-bit index. */
#define LOAD(name, result, type) \
	INLINE result name(u64 base, u64 index) { return (result)AT(type, base, index); }
#define STORE(name, value_type, type) \
	INLINE void name(u64 base, u64 index, value_type value) { AT(type, base, index) = (type)value; }
LOAD(i32_load, u32, u32m)
LOAD(i64_load, u64, u64m)
LOAD(f32_load, f32, f32m)
LOAD(f64_load, f64, f64m)
LOAD(i32_load8_s, u32, s8)
LOAD(i32_load8_u, u32, u8)
LOAD(i32_load16_s, u32, s16m)
LOAD(i32_load16_u, u32, u16m)
LOAD(i64_load8_s, u64, s8)
LOAD(i64_load8_u, u64, u8)
LOAD(i64_load16_s, u64, s16m)
LOAD(i64_load16_u, u64, u16m)
LOAD(i64_load32_s, u64, s32m)
LOAD(i64_load32_u, u64, u32m)
STORE(i32_store, u32, u32m)
STORE(i64_store, u64, u64m)
STORE(f32_store, f32, f32m)
STORE(f64_store, f64, f64m)
STORE(i32_store8, u32, u8)
STORE(i32_store16, u32, u16m)
STORE(i64_store8, u64, u8)
STORE(i64_store16, u64, u16m)
STORE(i64_store32, u64, u32m)

/* bsf and bsr leave the destination as it was if the source is 0. */
#define BIT_SCAN(u, suffix) \
	INLINE u first_bit_##u(u a, u none) \
	{ \
		__asm__("bsf" suffix " %1, %0" : "+r"(none) : "r"(a) : "cc"); \
		return none; \
	} \
	INLINE u last_bit_##u(u a, u none) \
	{ \
		__asm__("bsr" suffix " %1, %0" : "+r"(none) : "r"(a) : "cc"); \
		return none; \
	}
BIT_SCAN(u32, "l")
BIT_SCAN(u64, "q")

/* The C compiler must not count the bits of a half: the checker does not have popcnt with 16 bits. */
#define WIDE(a) ({ __typeof__(a) wide = a; if (!__builtin_constant_p(wide)) __asm__("" : "+r"(wide)); wide; })

/* Integers. */
#define INTEGER(i, u, s, bits, least, clz, ctz, popcnt) \
	INLINE u32 i##_eqz(u a) { return a == 0; } \
	INLINE u32 i##_eq(u a, u b) { return a == b; } \
	INLINE u32 i##_ne(u a, u b) { return a != b; } \
	INLINE u32 i##_lt_s(u a, u b) { return (s)a < (s)b; } \
	INLINE u32 i##_lt_u(u a, u b) { return a < b; } \
	INLINE u32 i##_gt_s(u a, u b) { return (s)a > (s)b; } \
	INLINE u32 i##_gt_u(u a, u b) { return a > b; } \
	INLINE u32 i##_le_s(u a, u b) { return (s)a <= (s)b; } \
	INLINE u32 i##_le_u(u a, u b) { return a <= b; } \
	INLINE u32 i##_ge_s(u a, u b) { return (s)a >= (s)b; } \
	INLINE u32 i##_ge_u(u a, u b) { return a >= b; } \
	INLINE u i##_clz(u a) \
	{ \
		if (__builtin_constant_p(a)) \
			return a ? clz(a) : bits; \
		return last_bit_##u(a, 2 * bits - 1) ^ (bits - 1); \
	} \
	INLINE u i##_ctz(u a) \
	{ \
		if (__builtin_constant_p(a)) \
			return a ? ctz(a) : bits; \
		return first_bit_##u(a, bits); \
	} \
	INLINE u i##_popcnt(u a) { return popcnt(WIDE(a)); } \
	INLINE u i##_add(u a, u b) { return a + b; } \
	INLINE u i##_sub(u a, u b) { return a - b; } \
	INLINE u i##_mul(u a, u b) { return a * b; } \
	INLINE u i##_div_u(u a, u b) { trap_if(b == 0); return a / b; } \
	INLINE u i##_rem_u(u a, u b) { trap_if(b == 0); return a % b; } \
	INLINE u i##_div_s(u a, u b) \
	{ \
		trap_if(b == 0 || (a == least && b == (u)-1)); \
		return (u)((s)a / (s)b); \
	} \
	INLINE u i##_rem_s(u a, u b) \
	{ \
		trap_if(b == 0); \
		return b == (u)-1 ? 0 : (u)((s)a % (s)b); \
	} \
	INLINE u i##_and(u a, u b) { return a & b; } \
	INLINE u i##_or(u a, u b) { return a | b; } \
	INLINE u i##_xor(u a, u b) { return a ^ b; } \
	INLINE u i##_shl(u a, u b) { return a << (b & (bits - 1)); } \
	INLINE u i##_shr_s(u a, u b) { return (u)((s)a >> (b & (bits - 1))); } \
	INLINE u i##_shr_u(u a, u b) { return a >> (b & (bits - 1)); } \
	INLINE u i##_rotl(u a, u b) { return a << (b & (bits - 1)) | a >> (-b & (bits - 1)); } \
	INLINE u i##_rotr(u a, u b) { return a >> (b & (bits - 1)) | a << (-b & (bits - 1)); } \
	INLINE u i##_extend8_s(u a) { return (u)(s8)a; } \
	INLINE u i##_extend16_s(u a) { return (u)(s16)a; }
INTEGER(i32, u32, s32, 32, 0x80000000u, __builtin_clz, __builtin_ctz, __builtin_popcount)
INTEGER(i64, u64, s64, 64, 0x8000000000000000ull, __builtin_clzl, __builtin_ctzl, __builtin_popcountl)
INLINE u64 i64_extend32_s(u64 a) { return (u64)(s32)a; }
INLINE u64 i64_extend_i32_s(u32 a) { return (u64)(s32)a; }
INLINE u64 i64_extend_i32_u(u32 a) { return a; }
INLINE u32 i32_wrap_i64(u64 a) { return (u32)a; }

/* Not for hosts without vector registers. */
#ifdef __SSE4_1__

/* Numbers with a point. Bits of NaN count, so they are taken as they are. */
INLINE f32 f32_bits(u32 a) { f32 b; __builtin_memcpy(&b, &a, 4); return b; }
INLINE f64 f64_bits(u64 a) { f64 b; __builtin_memcpy(&b, &a, 8); return b; }
INLINE u32 i32_reinterpret_f32(f32 a) { u32 b; __builtin_memcpy(&b, &a, 4); return b; }
INLINE u64 i64_reinterpret_f64(f64 a) { u64 b; __builtin_memcpy(&b, &a, 8); return b; }
INLINE f32 f32_reinterpret_i32(u32 a) { return f32_bits(a); }
INLINE f64 f64_reinterpret_i64(u64 a) { return f64_bits(a); }

typedef f32 f32x4 __attribute__((vector_size(16)));
typedef f64 f64x2 __attribute__((vector_size(16)));
#define ROUND_f32(a, mode) __builtin_ia32_roundss((f32x4){a, 0, 0, 0}, (f32x4){a, 0, 0, 0}, mode)[0]
#define ROUND_f64(a, mode) __builtin_ia32_roundsd((f64x2){a, 0}, (f64x2){a, 0}, mode)[0]

/* Modes of rounding, without the exception for an inexact result: SSE4.1's immediate. */
#define FLOATING(f, u, sign, abs, copysign, sqrt, reinterpret) \
	INLINE u32 f##_eq(f a, f b) { return a == b; } \
	INLINE u32 f##_ne(f a, f b) { return a != b; } \
	INLINE u32 f##_lt(f a, f b) { return a < b; } \
	INLINE u32 f##_gt(f a, f b) { return a > b; } \
	INLINE u32 f##_le(f a, f b) { return a <= b; } \
	INLINE u32 f##_ge(f a, f b) { return a >= b; } \
	INLINE f f##_abs(f a) { return f##_bits(reinterpret(a) & ~sign); } \
	INLINE f f##_neg(f a) { return f##_bits(reinterpret(a) ^ sign); } \
	INLINE f f##_copysign(f a, f b) \
	{ \
		return f##_bits((reinterpret(a) & ~sign) | (reinterpret(b) & sign)); \
	} \
	INLINE f f##_ceil(f a) { return ROUND_##f(a, 10); } \
	INLINE f f##_floor(f a) { return ROUND_##f(a, 9); } \
	INLINE f f##_trunc(f a) { return ROUND_##f(a, 11); } \
	INLINE f f##_nearest(f a) { return ROUND_##f(a, 8); } \
	INLINE f f##_sqrt(f a) { return sqrt(a); } \
	INLINE f f##_add(f a, f b) { return a + b; } \
	INLINE f f##_sub(f a, f b) { return a - b; } \
	INLINE f f##_mul(f a, f b) { return a * b; } \
	INLINE f f##_div(f a, f b) { return a / b; } \
	INLINE f f##_min(f a, f b) \
	{ \
		if (a == b) \
			return f##_bits(reinterpret(a) | reinterpret(b)); \
		return a < b ? a : b < a ? b : a + b; \
	} \
	INLINE f f##_max(f a, f b) \
	{ \
		if (a == b) \
			return f##_bits(reinterpret(a) & reinterpret(b)); \
		return a > b ? a : b > a ? b : a + b; \
	}
FLOATING(f32, u32, 0x80000000u, __builtin_fabsf, __builtin_copysignf, __builtin_sqrtf, i32_reinterpret_f32)
FLOATING(f64, u64, 0x8000000000000000ull, __builtin_fabs, __builtin_copysign, __builtin_sqrt, i64_reinterpret_f64)

INLINE f64 f64_promote_f32(f32 a) { return (f64)a; }
/* The asm keeps a promotion before it, which makes a signalling NaN quiet. */
INLINE f32 f32_demote_f64(f64 a) { __asm__("" : "+x"(a)); return (f32)a; }
#define CONVERT(f) \
	INLINE f f##_convert_i32_s(u32 a) { return (f)(s32)a; } \
	INLINE f f##_convert_i32_u(u32 a) { return (f)a; } \
	INLINE f f##_convert_i64_s(u64 a) { return (f)(s64)a; } \
	INLINE f f##_convert_i64_u(u64 a) { return (f)a; }
CONVERT(f32)
CONVERT(f64)

/* To integers: `inside` holds for what has a result, `low` and `high` are the others'. */
#define TRUNCATE(i, f, sign, u, s, inside, low, high) \
	INLINE u i##_trunc_##f##_##sign(f a) { trap_if(!(inside)); return (u)(s)a; } \
	INLINE u i##_trunc_sat_##f##_##sign(f a) \
	{ \
		if (inside) \
			return (u)(s)a; \
		return a != a ? 0 : a < 0 ? low : high; \
	}
TRUNCATE(i32, f32, s, u32, s32, a >= -0x1p31f && a < 0x1p31f, 0x80000000u, 0x7fffffffu)
TRUNCATE(i32, f64, s, u32, s32, a > -2147483649.0 && a < 0x1p31, 0x80000000u, 0x7fffffffu)
TRUNCATE(i32, f32, u, u32, u32, a > -1.0f && a < 0x1p32f, 0, ~0u)
TRUNCATE(i32, f64, u, u32, u32, a > -1.0 && a < 0x1p32, 0, ~0u)
TRUNCATE(i64, f32, s, u64, s64, a >= -0x1p63f && a < 0x1p63f, 1ull << 63, ~0ull >> 1)
TRUNCATE(i64, f64, s, u64, s64, a >= -0x1p63 && a < 0x1p63, 1ull << 63, ~0ull >> 1)
TRUNCATE(i64, f32, u, u64, u64, a > -1.0f && a < 0x1p64f, 0, ~0ull)
TRUNCATE(i64, f64, u, u64, u64, a > -1.0 && a < 0x1p64, 0, ~0ull)

#endif

/*
 * Ranges of memories, segments and tables. Indices stay numbers of 32 bits, as KEEP makes sure: the checker then sees
 * that what they are added to a constant for lies in the region.
 */
#define KEEP(index) __asm__("" : "+r"(index))

INLINE void memory_range(u64 size, u32 start, u32 count)
{
	trap_if((u64)start + count > (u64)load32(size) << 16);
}

INLINE void entry_range(u64 size, u32 start, u32 count)
{
	trap_if((u64)start + count > load32(size));
}

/* 16 bytes at a time, in the direction that overlapping ranges need. */
INLINE void copy_bytes(u64 to_base, u64 from_base, u32 to, u32 from, u32 count)
{
	if (to_base != from_base || to - from >= count) {
		for (; count >= 16; to += 16, from += 16, count -= 16) {
			KEEP(to);
			KEEP(from);
			AT(v128m, to_base, to) = AT(v128m, from_base, from);
		}
		for (; count; to++, from++, count--) {
			KEEP(to);
			KEEP(from);
			AT(u8, to_base, to) = AT(u8, from_base, from);
		}
		return;
	}
	for (; count >= 16; count -= 16) {
		u32 d = to + count - 16, s = from + count - 16;

		KEEP(d);
		KEEP(s);
		AT(v128m, to_base, d) = AT(v128m, from_base, s);
	}
	while (count) {
		u32 d = to + --count, s = from + count;

		KEEP(d);
		KEEP(s);
		AT(u8, to_base, d) = AT(u8, from_base, s);
	}
}

INLINE void fill_bytes(u64 base, u32 to, u32 value, u32 count)
{
	u64 word = (value & 0xff) * 0x0101010101010101ull;

	for (; count >= 16; to += 16, count -= 16) {
		KEEP(to);
		AT(v128m, base, to) = (v128){word, word};
	}
	for (; count; to++, count--) {
		KEEP(to);
		AT(u8, base, to) = (u8)value;
	}
}

INLINE u32 table_get(u64 base, u64 size, u32 index)
{
	trap_if(index >= load32(size));
	return AT(u32m, base, 4 * (u64)index);
}

INLINE void table_set(u64 base, u64 size, u32 index, u32 value)
{
	trap_if(index >= load32(size));
	AT(u32m, base, 4 * (u64)index) = value;
}

INLINE void fill_entries(u64 base, u32 index, u32 value, u32 count)
{
	for (; count; index++, count--) {
		KEEP(index);
		AT(u32m, base, 4 * (u64)index) = value;
	}
}

INLINE void table_fill(u64 base, u64 size, u32 index, u32 value, u32 count)
{
	entry_range(size, index, count);
	fill_entries(base, index, value, count);
}

INLINE u32 table_grow(u64 base, u64 size, u32 most, u32 value, u32 count)
{
	u32 old = load32(size);

	if ((u64)old + count > most)
		return -1u;
	fill_entries(base, old, value, count);
	store32(size, old + count);
	return old;
}

INLINE void table_copy(u64 to_base, u64 to_size, u64 from_base, u64 from_size, u32 to, u32 from, u32 count)
{
	entry_range(to_size, to, count);
	entry_range(from_size, from, count);
	if (to - from >= count) {
		for (; count; to++, from++, count--) {
			KEEP(to);
			KEEP(from);
			AT(u32m, to_base, 4 * (u64)to) = AT(u32m, from_base, 4 * (u64)from);
		}
		return;
	}
	while (count) {
		u32 d = to + --count, s = from + count;

		KEEP(d);
		KEEP(s);
		AT(u32m, to_base, 4 * (u64)d) = AT(u32m, from_base, 4 * (u64)s);
	}
}
