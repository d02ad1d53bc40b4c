import { expect, test } from 'vitest'
import { TAKE_BACK } from '../../../../src/stores/redis/store/compensation.js'
import { RENEW, RESERVE, SETTLE } from '../../../../src/stores/redis/store/idempotency-scripts.js'
import { CONSUME } from '../../../../src/stores/redis/store/redis-store.js'
import { startRedis } from '../../../support/redis.js'

test('every script has the digest that Redis gives it', async () => {
  const redis = await startRedis()
  for (const { source, sha } of [CONSUME, RESERVE, RENEW, SETTLE, TAKE_BACK]) {
    expect(await redis.command('SCRIPT', 'LOAD', source)).toBe(sha)
  }
  await redis.stop()
})
