import { expect, it } from 'vitest'
import { UNDO_RESERVE } from '../../../../src/stores/redis/store/compensation.js'
import { RENEW, RESERVE, SETTLE } from '../../../../src/stores/redis/store/idempotency-scripts.js'
import { CONSUME } from '../../../../src/stores/redis/store/redis-store.js'
import { ownRedis } from '../kit.js'

it('every script has the digest that Redis gives it', async () => {
  const redis = await ownRedis()
  for (const { source, sha } of [CONSUME, RESERVE, RENEW, SETTLE, UNDO_RESERVE]) {
    expect(await redis.command('SCRIPT', 'LOAD', source)).toBe(sha)
  }
})
