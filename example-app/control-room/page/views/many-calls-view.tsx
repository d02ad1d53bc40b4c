import { type ManyCallsResult, RECEIVERS } from '../../protocol.js'
import { StartOffer } from '../components/start-offer.js'
import { count, milliseconds, plural } from '../components/words.js'

/** How many of many calls got each answer. */
export function ManyCallsView({ result }: { readonly result: ManyCallsResult }) {
  const { calls, milliseconds: took, answers, newOrders } = result
  return (
    <div class="stack">
      <p class="headline">
        {plural(calls, 'call')} in {milliseconds(took)}, {plural(newOrders, 'new order')} on the
        books
      </p>
      {answers.some(({ status }) => status === undefined) &&
        RECEIVERS.map((receiver) => <StartOffer key={receiver} receiver={receiver} />)}
      <div class="scroller">
        <table class="table">
          <caption class="visually-hidden">Answers to the calls</caption>
          <thead>
            <tr>
              <th scope="col" class="number">
                Calls
              </th>
              <th scope="col">The caller got</th>
              <th scope="col">The operator saw</th>
            </tr>
          </thead>
          <tbody>
            {answers.map(({ status, reason, isReplay, calls: number }) => (
              <tr key={`${status} ${reason} ${isReplay}`}>
                <td class="number">{count(number)}</td>
                {status === undefined ? (
                  <>
                    <td>no answer: {reason}</td>
                    <td>nothing</td>
                  </>
                ) : (
                  <>
                    <td>
                      {status}
                      {isReplay && ', the stored answer'}
                    </td>
                    <td>{reason ? <code>{reason}</code> : 'accepted'}</td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}
