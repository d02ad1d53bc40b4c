import type { OperatorView as Seen, VerdictStep } from '../../protocol.js'
import { Badge } from '../components/badge.js'
import { Bytes } from '../components/bytes.js'
import { Fact, Facts } from '../components/facts.js'
import { plural } from '../components/words.js'

/** What whoever operates the receiver saw of the call. */
export function OperatorView({ seen }: { readonly seen: Seen }) {
  return (
    <section class="view view-operator stack" aria-labelledby="operator-view">
      <h3 id="operator-view">What the operator saw</h3>
      <p class="headline">
        {seen.events.length === 0 ? (
          <Badge tone="neutral">nothing</Badge>
        ) : (
          <Badge tone={seen.outcome}>{seen.outcome}</Badge>
        )}{' '}
        {seen.reason && <code>{seen.reason}</code>}
      </p>
      <Evidence seen={seen} />
      {seen.steps.length > 0 && (
        <>
          <h4 id="verdict-steps">The steps of the verdict</h4>
          <ol class="steps" aria-labelledby="verdict-steps">
            {seen.steps.map((step) => (
              <Step key={step.name} step={step} />
            ))}
          </ol>
        </>
      )}
      <Events seen={seen} />
    </section>
  )
}

function Evidence({ seen }: { readonly seen: Seen }) {
  const known = [
    ['caller', seen.caller],
    ['claim', seen.claim],
    ['permission', seen.permission],
    ['key id', seen.keyId],
  ].filter(([, value]) => value !== undefined)
  if (known.length === 0) return null
  return (
    <Facts>
      {known.map(([name = '', value]) => (
        <Fact key={name} name={name}>
          <code>{value}</code>
        </Fact>
      ))}
    </Facts>
  )
}

const STATES: Readonly<Record<VerdictStep['state'], readonly [sign: string, word: string]>> = {
  passed: ['✓', 'passed'],
  failed: ['✕', 'failed'],
  'not-reached': ['–', 'not reached'],
}

function Step({ step }: { readonly step: VerdictStep }) {
  const [sign, word] = STATES[step.state]
  return (
    <li class={`step step-${step.state}`}>
      <span class="step-sign" aria-hidden="true">
        {sign}
      </span>
      <span class="step-name">
        {step.name}
        {step.detail && <span class="step-detail">{step.detail}</span>}
      </span>
      <span class="step-word">{word}</span>
    </li>
  )
}

function Events({ seen: { events } }: { readonly seen: Seen }) {
  if (events.length === 0) return <p class="muted">The receiver has logged nothing about it.</p>
  return (
    <details>
      <summary>{plural(events.length, 'event')} of the package</summary>
      <Bytes
        label="Events of this call"
        text={events
          .map(({ channel, event }) => `${channel}\n${JSON.stringify(event, null, 2)}`)
          .join('\n\n')}
      />
    </details>
  )
}
