import { expect, it } from 'vitest'
import { operationUrl } from '../../../src/client/core/core-options.js'

it.each([
  ['https://core.example', 'https://core.example/recipe/jwt'],
  ['https://core.example/', 'https://core.example/recipe/jwt'],
  ['HTTPS://Core.Example:443/below//', 'https://core.example/below/recipe/jwt'],
])('finds the operations of %s at %s', (address, expected) => {
  expect(operationUrl(address, '/recipe/jwt')).toBe(expected)
})
