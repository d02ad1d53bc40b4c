import { OUTCOMES, type Outcome } from '../../protocol.js'
import { room } from '../state.js'
import { Badge } from './badge.js'
import { count } from './words.js'

const MEANING: Readonly<Record<Outcome, string>> = {
  accepted: 'the handler ran',
  replayed: 'a retry got the stored answer',
  refused: 'the caller was at fault',
  undecided: 'it could not be decided',
  failed: 'there was no answer, or an error',
}

/** How the requests have ended since the room was started. */
export function Totals() {
  const totals = room.value?.totals
  return (
    <section class="totals" aria-label="Requests since the start">
      <dl>
        {OUTCOMES.map((outcome) => (
          <div key={outcome} class="total" title={MEANING[outcome]}>
            <dt>
              <Badge tone={outcome}>{outcome}</Badge>
            </dt>
            <dd>{totals ? count(totals[outcome]) : '–'}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
