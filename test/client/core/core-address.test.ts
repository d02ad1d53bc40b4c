import { expect, it } from 'vitest'
import { coreAddressFault, operationUrl } from '../../../src/client/core/core-options.js'

it.each(['https://core.example', 'https://core.example/below/', 'http://127.0.0.1:3567'])(
  'takes %s',
  (address) => {
    expect(coreAddressFault(address, false)).toBeUndefined()
  },
)

it.each([
  ['http://core.example', /https:/],
  ['https://user@core.example', /user name/],
  ['https://core.example?', /query/],
  ['https://core.example/?x', /query/],
  ['https://core.example/#', /fragment/],
])('refuses %s', (address, fault) => {
  expect(coreAddressFault(address, false)).toMatch(fault)
})

it.each([
  ['https://core.example', 'https://core.example/recipe/jwt'],
  ['https://core.example/', 'https://core.example/recipe/jwt'],
  ['HTTPS://Core.Example:443/below//', 'https://core.example/below/recipe/jwt'],
])('finds the operations of %s at %s', (address, expected) => {
  expect(operationUrl(address, '/recipe/jwt')).toBe(expected)
})
