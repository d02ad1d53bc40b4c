import { describe, expect, it } from 'vitest'
import { refuseSecrets } from '../../../src/cli/frame/arguments.js'

const isRefused = (text: string): boolean => {
  try {
    refuseSecrets(['probe', text])
    return false
  } catch {
    return true
  }
}

const TOKEN = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJiaWxsaW5nIn0.c2ln'

describe('a secret among the arguments', () => {
  it.each([
    'redis://h',
    'redis+tls://h',
    'x+redis://h',
    'valkeys://h',
    'say redis://h',
    'redis:x redis://h',
    'a://b redis://h',
    'REDIS://h',
    'x://u:p@h',
    'x://:p@h',
    'x://u:@h',
    'x://u:p:q@h',
    'a://b c://u:p@h',
    TOKEN,
    `-${TOKEN}`,
    `--${TOKEN}`,
    `x-${TOKEN}`,
    `x.${TOKEN}`,
    `x.y.${TOKEN}`,
    `Bearer ${TOKEN}`,
    'eyJ.x eyJa.b.c',
  ])('is found in %s', (text) => {
    expect(isRefused(text)).toBe(true)
  })

  it.each([
    'redis',
    'redis:/h',
    'myredis',
    'x://u@h',
    'x://h:1/a@b',
    'a:b@c',
    'eyJ',
    'eyJ.a.b',
    'eyJa.b.',
    'eyJa..b',
    'a.b.c',
    'keyJa.b.c',
  ])('is not found in %s', (text) => {
    expect(isRefused(text)).toBe(false)
  })
})
