import { expect, it } from 'vitest'
import { slotOf } from '../../../../src/stores/redis/clients/hash-slot.js'
import { sharedRedis } from '../kit.js'

const node = await sharedRedis({ 'cluster-enabled': 'yes' })

it.each([
  'esa:t:abc',
  'esa:k:0123456789abcdefABCDEF-_',
  '',
  'é€😀',
  '{orders}:t:abc',
  'a{orders}:t:{abc}',
  'a{}b{c}',
  'a{b',
  'a}b{c}',
  '{{x}}',
])('the slot of %j is the one that Redis says', async (key) => {
  expect(slotOf(key)).toBe(Number(await node.command('CLUSTER', 'KEYSLOT', key)))
})
