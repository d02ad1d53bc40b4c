import { expect, it } from 'vitest'
import { limitConcurrency } from '../../../src/client/token-source/token-source.js'

it('work runs so many pieces at once, in the order in which it came, failures included', async () => {
  const turns = limitConcurrency(2)
  const begun: number[] = []
  const ends: (() => void)[] = []
  const work = (number: number) =>
    turns.run(async () => {
      begun.push(number)
      await new Promise<void>((end) => ends.push(end))
      if (number === 1) throw new Error('of work 1')
      return number
    })
  const results = Promise.allSettled([0, 1, 2, 3].map(work))
  expect(begun).toEqual([0, 1])
  ends[1]?.()
  await expect.poll(() => begun).toEqual([0, 1, 2])
  ends[0]?.()
  await expect.poll(() => begun).toEqual([0, 1, 2, 3])
  for (const end of ends) end()
  expect((await results).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
  ])
  expect(await turns.run(async () => 'again')).toBe('again')
})
