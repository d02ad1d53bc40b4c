import { Failure } from '../components/action-button.js'
import { reveal } from '../components/reveal.js'
import { count } from '../components/words.js'
import {
  type CallEnd,
  calls,
  type HowMany,
  type LoggedCall,
  seenInWords,
  send,
} from './call-log.js'
import { draft } from './draft.js'

const BUTTONS: readonly (readonly [HowMany, text: string, about?: string])[] = [
  ['one', 'Send it'],
  ['hundred', 'Send a hundred'],
  ['twenty-at-once', 'Twenty at once', 'Half to each receiver'],
]

/** Sends the call in the form, and says in a line how the last one ended. */
export function SendButtons() {
  const last = calls.value[0]
  const { end } = last ?? {}
  return (
    <>
      <div class="row">
        {BUTTONS.map(([howMany, text, about]) => (
          <button
            key={howMany}
            type="button"
            class={howMany === 'one' ? 'button button-primary' : 'button'}
            title={about}
            onClick={() => {
              void send(draft.value, howMany)
              reveal('views-title')
            }}
          >
            {text}
          </button>
        ))}
        <Failure text={end && 'why' in end ? end.why : undefined} />
      </div>
      <p class="last-call" role="status">
        {last && (
          <>
            {lineOf(last)} <a href="#views">See both views</a>
          </>
        )}
      </p>
    </>
  )
}

function lineOf({ number, end }: LoggedCall): string {
  return `Call ${number}: ${wordsFor(end)}`
}

function wordsFor(end: CallEnd): string {
  switch (end.kind) {
    case 'waiting':
      return 'no answer yet.'
    case 'not-sent':
      return 'it was not sent.'
    case 'unknown':
      return 'its result is unknown.'
    case 'counted':
      return `${count(end.result.calls)} calls have ended.`
    case 'answered': {
      const { answer, operator } = end.result
      const got = 'status' in answer ? answer.status : 'no answer'
      return `the caller got ${got}, the operator saw ${seenInWords(operator)}.`
    }
  }
}
