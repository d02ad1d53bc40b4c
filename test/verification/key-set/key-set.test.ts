import { expect, it } from 'vitest'
import {
  type KeySet,
  type KeySource,
  keySourceOf,
  withSource,
} from '../../../src/verification/key-set/key-set.js'

const keySet: KeySet = {
  ready: async () => {},
  health: () => ({ state: 'cold', keys: [] }),
  close: () => {},
}
const source: KeySource = { current: () => undefined, find: async () => undefined }

it('gives a key set an inside that only this package reaches', () => {
  const made = withSource({ ...keySet }, source)
  expect(keySourceOf(made)).toBe(source)
  expect(Object.keys(made).sort()).toEqual(['close', 'health', 'ready'])
})

it.each([undefined, null, 1, 'keys', {}, keySet, { ...keySet, ...source }])(
  'finds no inside in what was not made here: %j',
  (value) => {
    expect(keySourceOf(value)).toBeUndefined()
  },
)
