import jax
import jax.numpy as jnp
from jax import lax

pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), [(1, 1)])
out, pull = jax.vjp(pool, jnp.full(3, -jnp.inf))
print(*pull(jnp.ones(3)))  # got [1. 1. 0.]
out, pull = jax.vjp(pool, jnp.array([1.0, 2.0, jnp.nan]))
print(out, *pull(jnp.ones(3)))  # got [ 2. nan nan] [0. 1. 1.]
