import type { ErrorRequestHandler } from 'express'
import { acceptOneOf, type Choice } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { startReceiver } from '../../support/receiver/receiver.js'
import { choice, pass, watchRejections } from './walk-gate.js'

watchRejections()

describe('acceptOneOf', () => {
  const { name: _name, ...nameless } = choice()
  const { presented: _presented, ...unpresented } = choice()
  const { verify: _verify, ...unverified } = choice()
  const { identity: _identity, ...unknown } = choice()
  const ofErrors: ErrorRequestHandler = (_error, _request, _response, _next) => {}
  it.each<[string, unknown, RegExp]>([
    ['no list', choice(), /choices: must be a list/],
    ['no choice', [], /choices: must not be empty/],
    ['a hole', Array(1), /choices\[0\]/],
    ['no object', ['session'], /choices\[0\]: the options must be an object/],
    ['two of one name', [choice(), choice()], /two choices named any/],
    ['no name', [nameless], /choices\[0\]: name must be a non-empty string/],
    ['a name that is no text', [choice({ name: 7 as never })], /name must be a non-empty string/],
    ['no presented', [choice({ name: 'a' }), unpresented], /choices\[1\]: presented must be a f/],
    ['no verifier', [unverified], /verify must be a handler/],
    ['a verifier of errors', [choice({ verify: ofErrors as never })], /verify must be a handler/],
    ['no identity', [unknown], /identity must be a function/],
    ['no authorize that can run', [choice({ authorize: {} as never })], /authorize/],
    ['a list in authorize', [choice({ authorize: [[pass]] as never })], /authorize/],
    ['an unknown member', [{ ...choice(), authorise: pass }], /authorise is not an option/],
  ])('takes %s for a mistake', (_what, choices, message) => {
    const make = () => acceptOneOf(choices as never)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  it.each<[unknown, RegExp]>([
    [{ onDecision: 'log' }, /onDecision must be a function/],
    [{ log: true }, /log is not an option/],
    [7, /must be an object/],
  ])('takes the options %j for a mistake', (options, message) => {
    const make = () => acceptOneOf([choice()], options as never)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  it('is not changed by what becomes of its choices, and takes objects of a class', async () => {
    class Mine implements Choice {
      readonly name = 'mine'
      readonly #whose = 'mine'
      readonly verify = pass
      presented() {
        return this.#whose === 'mine'
      }
      identity() {
        return this.#whose
      }
    }
    const mine = new Mine()
    const choices: [Choice, ...Choice[]] = [mine]
    const gate = acceptOneOf(choices)
    choices.push(choice())
    Object.assign(mine, { name: 'changed', verify: undefined })
    const [{ express }] = EXPRESS_MAJORS as [(typeof EXPRESS_MAJORS)[0]]
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(gate),
      handler: (request, response) => void response.json(gate.credentialOf(request)),
    })
    expect(await receiver.raw()).toContain('{"name":"mine","identity":"mine"}')
  })
})
